{{/* How the kubelet asks: by gRPC; with TLS, which its gRPC lacks, by HTTPS or connecting. Takes (root, path). */}}
{{- define "quire.probe" -}}
{{- $values := (index . 0).Values -}}
{{- if not $values.tls.secretName -}}
grpc:
  port: {{ $values.ports.grpc }}
{{- else if $values.tls.requireClientCertificate -}}
tcpSocket:
  port: http
{{- else -}}
httpGet:
  port: http
  path: {{ index . 1 }}
  scheme: HTTPS
{{- end }}
{{- end }}
