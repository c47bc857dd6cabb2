{{/* The name of all that the release has. */}}
{{- define "bss.name" -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- end }}

{{/* Of the browsers, and of all that a provisioner may do to Pods and Secrets. */}}
{{- define "bss.browsersNamespace" -}}
{{- .Values.browsers.namespace.name | default (printf "%s-browsers" (include "bss.name" .)) -}}
{{- end }}

{{- define "bss.labels" -}}
{{ include "bss.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "bss.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "bss.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "bss.secret" -}}
{{ .Values.existingSecret | default (printf "%s-secrets" (include "bss.name" .)) }}
{{- end }}

{{- define "bss.natsUrl" -}}
{{- if .Values.nats.enabled -}}
{{- $name := include "bss.name" . -}}
{{- $urls := list -}}
{{- range until (int .Values.nats.replicas) -}}
{{- $urls = append $urls (printf "tls://%s-nats-%d.%s-nats:4222" $name . $name) -}}
{{- end -}}
{{ join "," $urls }}
{{- else -}}
{{ required "nats.url: is required where nats.enabled is false" .Values.nats.url }}
{{- end -}}
{{- end }}

{{- define "bss.redisUrl" -}}
{{- if .Values.redis.enabled -}}
rediss://{{ include "bss.name" . }}-redis:6379
{{- else -}}
{{ required "redis.url: is required where redis.enabled is false" .Values.redis.url }}
{{- end -}}
{{- end }}

{{/* The variables of one role: (dict "root" $ "role" "api"). */}}
{{- define "bss.env" -}}
{{- $values := .root.Values -}}
{{- $public := printf "wss://%s:%v" $values.publicHost $values.publicPort -}}
{{- $env := dict
  "NATS_USER" .role
  "NATS_URL" (include "bss.natsUrl" .root)
  "NATS_PASSWORD_FILE" (printf "/secrets/nats_%s" .role)
  "NATS_CA_FILE" "/secrets/inside-ca.pem"
  "REDIS_URL" (include "bss.redisUrl" .root)
  "REDIS_PASSWORD_FILE" "/secrets/redis"
  "REDIS_CA_FILE" "/secrets/inside-ca.pem"
  "MASTER_KEY_FILE" "/secrets/master_key"
  "PUBLIC_GATEWAY_WS_URL" $public
  "PUBLIC_GATEWAY_WSS_URL" $public
  "TRUSTED_PROXIES" $values.trustedProxies
  "RETAIN_ENDED" (ternary $values.retainEnded "forever" (ne $values.archive.url ""))
  "ARCHIVE_URL" $values.archive.url
  "ARCHIVE_S3_ENDPOINT" $values.s3.endpoint
  "ARCHIVE_S3_REGION" $values.s3.region
  "OBJECT_STORE" $values.objects.store
  "OBJECT_STORE_MAX_MB" (printf "%v" $values.objects.maxMb)
  "OBJECT_STORE_ORGANIZATION_MAX_MB" (printf "%v" $values.objects.organizationMaxMb)
-}}
{{/* bss doctor looks at what a process of its roles needs. */}}
{{- $_ := set $env "ROLES" (ternary "provisioner" .role (eq .role "operator")) -}}
{{- if ne .role "operator" -}}
{{- $_ := set $env "METRICS_PORT" "9464" -}}
{{- $_ := set $env "METRICS_TOKEN_FILE" "/secrets/metrics_token" -}}
{{- end -}}
{{- if has .role (list "api" "operator") -}}
{{- $_ := set $env "AUDIT_KEY_FILE" "/secrets/audit_key" -}}
{{- end -}}
{{/* Browsers outlive a provisioner that waits for a node or an image. */}}
{{- if eq .role "timekeeper" -}}{{- $_ := set $env "SERVER_LOST_AFTER" "10m" -}}{{- end -}}
{{- if eq .role "api" -}}
{{- $_ := set $env "OPERATOR_TOKEN_FILE" "/secrets/operator_token" -}}
{{- $_ := set $env "GATEWAY_URL" (printf "http://%s-gateway:%v" (include "bss.name" .root) .root.Values.service.gateway.port) -}}
{{- end -}}
{{- range $name, $value := merge (dict) (dig .role "env" dict $values.roles) $values.env $env }}
{{- if ne (printf "%v" $value) "" }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- end }}
{{- with $values.s3.existingSecret }}
- name: AWS_ACCESS_KEY_ID
  valueFrom: { secretKeyRef: { name: {{ . }}, key: access_key_id } }
- name: AWS_SECRET_ACCESS_KEY
  valueFrom: { secretKeyRef: { name: {{ . }}, key: secret_access_key } }
{{- end }}
{{- end }}

{{/* The files of one role in /secrets: below /run/secrets the kubelet has the token of the Pod. */}}
{{- define "bss.secretItems" -}}
{{- $names := list "master_key" "metrics_token" "redis" "inside-ca.pem" (printf "nats_%s" .role) -}}
{{- if eq .role "api" -}}{{- $names = concat $names (list "audit_key" "operator_token") -}}{{- end -}}
{{- if eq .role "operator" -}}{{- $names = append $names "audit_key" -}}{{- end -}}
{{- if eq .role "archivist" -}}{{- $names = append $names "archive_key" -}}{{- end -}}
{{- range $names }}
- { key: {{ . }}, path: {{ . }} }
{{- end }}
{{- end }}

{{- define "bss.podSecurity" -}}
runAsNonRoot: true
runAsUser: 1000
runAsGroup: 1000
fsGroup: 1000
seccompProfile: { type: RuntimeDefault }
{{- end }}

{{- define "bss.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
{{- end }}

{{/* Where the service's own Pods run, apart from each other. */}}
{{- define "bss.placement" -}}
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.nodeSelector }}
nodeSelector: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.tolerations }}
tolerations: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.affinity }}
affinity: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .root.Values.dnsPolicy }}
dnsPolicy: {{ . }}
{{- end }}
{{- with .root.Values.dnsConfig }}
dnsConfig: {{ toYaml . | nindent 2 }}
{{- end }}
topologySpreadConstraints:
{{- range list "topology.kubernetes.io/zone" "kubernetes.io/hostname" }}
  - maxSkew: 1
    topologyKey: {{ . }}
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "bss.selector" $.root | nindent 8 }}
        app.kubernetes.io/component: {{ $.role }}
{{- end }}
{{- end }}

{{/* A process that hangs is restarted; one without its NATS is not, and gets no requests. */}}
{{- define "bss.probes" -}}
{{- $health := dict "exec" (dict "command" (list "node" "/app/deploy/health.mjs")) -}}
startupProbe:
  {{- toYaml $health | nindent 2 }}
  periodSeconds: 2
  timeoutSeconds: 5
  # A provisioner waits for the first pull of the browsers' image.
  failureThreshold: 300
livenessProbe:
  {{- toYaml $health | nindent 2 }}
  periodSeconds: 20
  timeoutSeconds: 10
  failureThreshold: 6
  # Not the grace of a drain: a process that hangs does not drain.
  terminationGracePeriodSeconds: 60
readinessProbe:
  {{- if eq . "api" }}
  httpGet: { path: /api/ready, port: http }
  {{- else if eq . "gateway" }}
  tcpSocket: { port: http }
  {{- else }}
  tcpSocket: { port: metrics }
  {{- end }}
  periodSeconds: 5
  timeoutSeconds: 5
{{- end }}

{{/* What the browsers are: of the provisioner, and of whoever looks at it. */}}
{{- define "bss.browserEnv" -}}
{{- $browsers := .Values.browsers }}
{{- $pod := dict }}
{{- range $name := list "nodeSelector" "tolerations" "affinity" "priorityClassName" }}
{{- with index $browsers $name }}{{ $_ := set $pod $name . }}{{ end }}
{{- end }}
{{- with .Values.imagePullSecrets }}{{ $_ := set $pod "imagePullSecrets" . }}{{ end }}
- { name: BROWSERS, value: kubernetes }
- { name: BROWSER_IMAGE, value: {{ required "browsers.image: an image of deploy/browser that the nodes can pull is required" $browsers.image | quote }} }
- { name: KUBERNETES_NAMESPACE, value: {{ include "bss.browsersNamespace" . }} }
- { name: KUBERNETES_OWNER, value: {{ include "bss.name" . }}-browsers }
- { name: KUBERNETES_ISOLATION, value: {{ $browsers.isolation }} }
- { name: KUBERNETES_SECCOMP, value: {{ $browsers.seccomp | quote }} }
{{- with $browsers.runtimeClass }}
- { name: KUBERNETES_RUNTIME_CLASS, value: {{ . | quote }} }
{{- end }}
- { name: KUBERNETES_USER_NAMESPACES, value: {{ ternary "yes" "no" $browsers.userNamespaces | quote }} }
{{- with $browsers.dns }}
- { name: KUBERNETES_DNS, value: {{ . | quote }} }
{{- end }}
- { name: KUBERNETES_POD, value: {{ $pod | toJson | quote }} }
- { name: BROWSER_MEMORY_MB, value: {{ $browsers.limits.memoryMb | quote }} }
- { name: BROWSER_CPUS, value: {{ $browsers.limits.cpus | quote }} }
- { name: BROWSER_MEMORY_REQUEST_MB, value: {{ $browsers.requests.memoryMb | quote }} }
- { name: BROWSER_CPUS_REQUEST, value: {{ $browsers.requests.cpus | quote }} }
{{- end }}
