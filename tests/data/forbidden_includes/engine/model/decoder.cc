#include <grpcpp/grpcpp.h>
#include <oneapi/dnnl/dnnl.hpp>

#include "decoder_layer.h"
#include "engine/ops/rms_norm.h"
