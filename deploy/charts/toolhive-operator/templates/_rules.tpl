{{/*
The rights of the operator on what it watches, in one place. They are bound for the whole cluster or for single namespaces (rbac.yaml).

Server-side apply is `patch`, and `create` when the object is new. An account cannot grant rights that it does not hold: what the operator gives the
runner of an MCPServer (statefulsets, services, pods, pods/attach) it must hold itself.
*/}}
{{- define "toolhive-operator.rules" -}}
# The custom resources.
- apiGroups: [toolhive.stacklok.dev]
  resources:
    - mcpexternalauthconfigs
    - mcpgroups
    - mcpregistries
    - mcpremoteproxies
    - mcpserverentries
    - mcpservers
    - mcptoolconfigs
    - virtualmcpcompositetooldefinitions
    - virtualmcpservers
  verbs: [get, list, watch]
- apiGroups: [toolhive.stacklok.dev]
  resources:
    - mcpexternalauthconfigs/status
    - mcpgroups/status
    - mcpregistries/status
    - mcpremoteproxies/status
    - mcpserverentries/status
    - mcpservers/status
    - mcptoolconfigs/status
    - virtualmcpcompositetooldefinitions/status
    - virtualmcpservers/status
  verbs: [patch]
# Finalizers: those that hold the deletion of a configuration in use, and those that another operator left on groups and servers.
- apiGroups: [toolhive.stacklok.dev]
  resources: [mcpexternalauthconfigs, mcpgroups, mcpregistries, mcpservers, mcptoolconfigs]
  verbs: [patch]
# Owner references with blockOwnerDeletion, where the cluster checks the right to set them.
- apiGroups: [toolhive.stacklok.dev]
  resources:
    - mcpexternalauthconfigs/finalizers
    - mcpregistries/finalizers
    - mcpremoteproxies/finalizers
    - mcpservers/finalizers
    - virtualmcpservers/finalizers
  verbs: [update]
# What it makes for them. It makes no StatefulSet itself: runners do, whose rights it grants.
- apiGroups: ['']
  resources: [configmaps, serviceaccounts, services]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [apps]
  resources: [deployments, statefulsets]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [networking.k8s.io]
  resources: [networkpolicies]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [rbac.authorization.k8s.io]
  resources: [roles, rolebindings]
  verbs: [get, list, watch, create, patch, delete]
# Of MCPRegistries with several replicas.
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: [get, create, patch, delete]
# A restart at once, which the annotation restart-strategy asks for, deletes the pods.
- apiGroups: ['']
  resources: [pods]
  verbs: [get, list, watch, delete]
# The seal of a VirtualMCPServer, made once, and keys of authorization servers, made and rotated. Secrets of others it only looks at.
- apiGroups: ['']
  resources: [secrets]
  verbs: [get, list, watch, create, update]
- apiGroups: [gateway.networking.k8s.io]
  resources: [gateways, httproutes, referencegrants]
  verbs: [get, list, watch]
# Granted to registry servers that elect the one that reads the cluster, never used by the operator beside its own Lease.
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [create, get, update]
# Granted to runners of stdio servers, never used by the operator.
- apiGroups: ['']
  resources: [pods/attach]
  verbs: [create, get]
# Its own, and those of runners, which tell why an MCP server does not work.
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [list, watch, create, patch]
{{- end -}}

{{/* On the cluster itself; only with scope cluster. */}}
{{- define "toolhive-operator.clusterRules" -}}
- apiGroups: [apiextensions.k8s.io]
  resources: [customresourcedefinitions]
  verbs: [get, list, watch]
{{- end -}}

{{/* Tells the API server which certificate of the webhook to trust. */}}
{{- define "toolhive-operator.webhookRules" -}}
- apiGroups: [admissionregistration.k8s.io]
  resources: [validatingwebhookconfigurations]
  resourceNames: [{{ include "toolhive-operator.fullname" . }}]
  verbs: [get, patch]
{{- end -}}

{{/* In its own namespace: the certificates of the webhook. */}}
{{- define "toolhive-operator.certificateRules" -}}
- apiGroups: ['']
  resources: [secrets]
  verbs: [create]
- apiGroups: ['']
  resources: [secrets]
  resourceNames: [{{ include "toolhive-operator.fullname" . }}-webhook]
  verbs: [get, update]
{{- end -}}

{{/* The rights of a registry server that exports all namespaces. */}}
{{- define "toolhive-operator.exportRules" -}}
- apiGroups: [toolhive.stacklok.dev]
  resources: [mcpservers, mcpremoteproxies, virtualmcpservers]
  verbs: [get, list, watch]
- apiGroups: ['']
  resources: [services]
  verbs: [get, list, watch]
- apiGroups: [gateway.networking.k8s.io]
  resources: [httproutes, gateways, referencegrants]
  verbs: [get, list, watch]
{{- end -}}

{{/* Binds them, and no other role. */}}
{{- define "toolhive-operator.bindRules" -}}
- apiGroups: [rbac.authorization.k8s.io]
  resources: [clusterrolebindings]
  verbs: [get, create, patch, delete]
- apiGroups: [rbac.authorization.k8s.io]
  resources: [clusterroles]
  resourceNames: [{{ include "toolhive-operator.exportRole" . }}]
  verbs: [bind]
{{- end -}}

{{- define "toolhive-operator.exportRole" -}}
{{- include "toolhive-operator.fullname" . }}-registry-export
{{- end -}}

{{/* In its own namespace: the Lease that decides which operator works. */}}
{{- define "toolhive-operator.leaseRules" -}}
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [create]
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  resourceNames: [toolhive-operator-leader-election]
  verbs: [get, update]
{{- end -}}
