{{/* Short enough for every suffix that is put after it. */}}
{{- define "toolhive-registry.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride -}}
{{- else if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* Labels that select the pods; they can never change. */}}
{{- define "toolhive-registry.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "toolhive-registry.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{ include "toolhive-registry.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: toolhive
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{- define "toolhive-registry.account" -}}
{{- include "toolhive-registry.fullname" . }}-api
{{- end -}}

{{- define "toolhive-registry.subjects" -}}
- kind: ServiceAccount
  name: {{ include "toolhive-registry.account" . }}
  namespace: {{ .Release.Namespace }}
{{- end -}}

{{/* Two releases in one namespace must not wait for each other's Lease. */}}
{{- define "toolhive-registry.lease" -}}
{{- include "toolhive-registry.fullname" . }}-kubernetes-source
{{- end -}}

{{/* That of the cluster, and those of further kubernetes sources: the server puts their names behind their ids. */}}
{{- define "toolhive-registry.leases" -}}
{{- $leases := list (include "toolhive-registry.lease" .) -}}
{{- range .Values.sources -}}
{{- if .kubernetes -}}
{{- $election := .kubernetes.leaderElection | default dict -}}
{{- $leases = append $leases (printf "%s-%s" ($election.id | default "toolhive-registry-kubernetes-source") .name) -}}
{{- end -}}
{{- end -}}
{{- join ", " $leases -}}
{{- end -}}

{{/* Rights to read MCP resources and what HTTPRoutes lead through. */}}
{{- define "toolhive-registry.rules" -}}
- apiGroups: [toolhive.stacklok.dev]
  resources: [mcpservers, mcpremoteproxies, virtualmcpservers]
  verbs: [get, list, watch]
{{- if .gateway.enabled }}
- apiGroups: [""]
  resources: [services]
  verbs: {{ ternary "[get, list, watch]" "[get]" .watch.enabled }}
- apiGroups: [gateway.networking.k8s.io]
  resources: [httproutes, gateways]
  verbs: [get, list, watch]
{{- include "toolhive-registry.grantRules" . }}
{{- end }}
{{- end -}}

{{- define "toolhive-registry.grantRules" -}}
{{- if .gateway.referenceGrants }}
- apiGroups: [gateway.networking.k8s.io]
  resources: [referencegrants]
  verbs: [get, list, watch]
{{- end }}
{{- end -}}

{{/* The configuration file. */}}
{{- define "toolhive-registry.config" -}}
{{- $sources := list -}}
{{- $kubernetes := .Values.kubernetes -}}
{{- if $kubernetes.enabled -}}
{{- $election := dict "enabled" true "id" (include "toolhive-registry.lease" .) "namespace" .Release.Namespace -}}
{{- $block := dict "namespaces" $kubernetes.namespaces "labelSelector" $kubernetes.labelSelector "crossNamespaceGateway" $kubernetes.gateway.crossNamespaceGateway "watch" $kubernetes.watch "leaderElection" $election -}}
{{- $sources = append $sources (dict "name" "cluster" "kubernetes" $block "syncPolicy" (dict "interval" $kubernetes.interval)) -}}
{{- end -}}
{{- $sources = concat $sources .Values.sources -}}
{{- if not $sources -}}
{{- fail "set sources, or kubernetes.enabled: the registry needs at least one source" -}}
{{- end -}}
{{- $names := list -}}
{{- range $sources }}{{- $names = append $names .name -}}{{- end -}}
{{- $config := dict "sources" $sources "registries" (list (dict "name" .Values.registryName "sources" $names)) "auth" .Values.auth -}}
{{- $db := .Values.database -}}
{{- if $db.host -}}
{{- $config = set $config "database" (dict "host" $db.host "port" $db.port "database" $db.name "user" $db.user "sslMode" $db.sslMode) -}}
{{- else -}}
{{- $config = set $config "storage" (dict "memory" true) -}}
{{- end -}}
{{- toYaml $config -}}
{{- end -}}
