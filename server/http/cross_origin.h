#pragma once

#include <httplib.h>

#include <utility>

#include "server/security/allowed_origins.h"

namespace quire {

// Which other sites' pages may use a visitor's browser to ask this server, by the Fetch standard's CORS:
// https://fetch.spec.whatwg.org/#http-cors-protocol. Requests of browsers say where they come from; those of other
// programs do not, and are not this class's.
class CrossOrigin {
 public:
  // None but the server's own page's.
  CrossOrigin() = default;
  // With `names_may_lie`, requests for a host that is neither an IP address nor localhost are refused: a page whose
  // name was turned to this machine's address (DNS rebinding) would be of the server's own origin.
  CrossOrigin(AllowedOrigins origins, bool names_may_lie)
      : origins_(std::move(origins)), names_may_lie_(names_may_lie) {}

  // Before any handler: answers what may not go on, and a browser's question whether a request may be sent, and lets
  // others pass. A page that browsers show in another one's frame could be clicked unseen: so none may be.
  httplib::Server::HandlerResponse Check(const httplib::Request& request, httplib::Response& response) const;

 private:
  AllowedOrigins origins_;
  bool names_may_lie_ = false;
};

}  // namespace quire
