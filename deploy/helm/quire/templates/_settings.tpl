{{/* The server's configuration file: the user's settings and those that follow from other values. */}}
{{- define "quire.settings" -}}
{{- $values := .Values -}}
{{- $settings := dict
      "model" $values.model.path
      "grpc_listen" (printf "0.0.0.0:%d" (int $values.ports.grpc))
      "http_listen" (printf "0.0.0.0:%d" (int $values.ports.http))
      "drain_seconds" $values.drainSeconds -}}
{{- with $values.model.servedName }}{{ $_ := set $settings "served_model_name" . }}{{ end -}}
{{- if $values.allowUnauthenticated -}}
  {{- $_ := set $settings "allow_unauthenticated" true -}}
{{- else if $values.apiKeys.secretName -}}
  {{- $_ := set $settings "api_keys" (printf "/etc/quire/keys/%s" $values.apiKeys.key) -}}
{{- end -}}
{{- if $values.tls.secretName -}}
  {{- $_ := set $settings "tls_certificate" "/etc/quire/tls/tls.crt" -}}
  {{- $_ := set $settings "tls_key" "/etc/quire/tls/tls.key" -}}
  {{- if $values.tls.requireClientCertificate -}}
    {{- $_ := set $settings "tls_client_ca" "/etc/quire/tls/ca.crt" -}}
  {{- end -}}
{{- end -}}
{{- merge $settings $values.config | toPrettyJson -}}
{{- end }}
