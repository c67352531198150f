{{/* Short enough for every suffix that is put after it. */}}
{{- define "toolhive-operator.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride -}}
{{- else if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* Labels that select the pods; they can never change. */}}
{{- define "toolhive-operator.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "toolhive-operator.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{ include "toolhive-operator.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: toolhive
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{- define "toolhive-operator.serviceAccountName" -}}
{{- .Values.operator.serviceAccount.name | default (include "toolhive-operator.fullname" .) -}}
{{- end -}}

{{/* The operator's account as the subject of a binding. */}}
{{- define "toolhive-operator.subjects" -}}
- kind: ServiceAccount
  name: {{ include "toolhive-operator.serviceAccountName" . }}
  namespace: {{ .Release.Namespace }}
{{- end -}}

{{/* Names out of a list of names and {name}: a JSON list. */}}
{{- define "toolhive-operator.names" -}}
{{- $names := list -}}
{{- range . -}}
{{- if kindIs "string" . -}}
{{- $names = append $names . -}}
{{- else -}}
{{- $names = append $names .name -}}
{{- end -}}
{{- end -}}
{{- $names | toJson -}}
{{- end -}}

{{/* Not empty when the admission webhook is served: it is registered for the whole cluster, so not with scope namespace, and not where
the API server asks no webhooks, as on the local platform. */}}
{{- define "toolhive-operator.webhook" -}}
{{- $isAsked := .Capabilities.APIVersions.Has "admissionregistration.k8s.io/v1" -}}
{{- if and .Values.webhook.enabled $isAsked (eq .Values.operator.rbac.scope "cluster") -}}
true
{{- end -}}
{{- end -}}

{{/* The Redis of workloads that name none, as JSON: the operator's own value or else the shared one, never a mixture of both. */}}
{{- define "toolhive-operator.redis" -}}
{{- $own := .Values.operator.defaultRedis | default dict -}}
{{- $shared := (.Values.global | default dict).redis | default dict -}}
{{- ternary $own $shared (ne ($own.addr | default "") "") | toJson -}}
{{- end -}}
