import type { PolicyRule, Role, RoleBinding, ServiceAccount } from '@thv/kube'
import type { CanonicalMCPServerSpec } from '@thv/resources/kinds/mcp-server/normalise'
import { pullSecrets } from '../deployment/template/pull-secrets.ts'
import type { OperatorSettings } from '../operator-settings.ts'
import { workloadLabels } from './labels.ts'
import { type ProxyKind, proxyNames, serverNames } from './names.ts'

export interface AccessInput {
  readonly kind: ProxyKind
  readonly name: string
  readonly namespace: string
  readonly spec: Pick<CanonicalMCPServerSpec, 'resourceOverrides'> &
    Partial<Pick<CanonicalMCPServerSpec, 'serviceAccount' | 'transport' | 'backendReplicas'>>
  readonly settings: Pick<OperatorSettings, 'defaultImagePullSecrets'>
}

export interface WorkloadAccess {
  readonly serviceAccounts: readonly ServiceAccount[]
  readonly roles: readonly Role[]
  readonly roleBindings: readonly RoleBinding[]
}

/** Account and rights of the pods. The proxy of a remote server may do nothing, so it gets an account and no Role. */
export function workloadAccess(input: AccessInput): WorkloadAccess {
  const { kind, name, spec } = input
  const { runnerAccount } = proxyNames(kind, name)
  if (kind === 'MCPRemoteProxy') {
    return { serviceAccounts: spec.serviceAccount === undefined ? [account(input, runnerAccount)] : [], roles: [], roleBindings: [] }
  }
  const own = spec.serviceAccount === undefined ? [account(input, serverNames(name).account)] : []
  return {
    serviceAccounts: [account(input, runnerAccount), ...own],
    roles: [{ apiVersion: RBAC, kind: 'Role', metadata: metadata(input, runnerAccount), rules: runnerRules(input) }],
    roleBindings: [
      {
        apiVersion: RBAC,
        kind: 'RoleBinding',
        metadata: metadata(input, runnerAccount),
        roleRef: { apiGroup: RBAC_GROUP, kind: 'Role', name: runnerAccount },
        subjects: [{ kind: 'ServiceAccount', name: runnerAccount, namespace: input.namespace }],
      },
    ],
  }
}

const RBAC_GROUP = 'rbac.authorization.k8s.io'
const RBAC = `${RBAC_GROUP}/v1`

/** Pods say themselves whether they want the token. Without pull secrets the field is left out, so that those of others are kept. */
function account(input: AccessInput, name: string): ServiceAccount {
  const secrets = pullSecrets(input.settings.defaultImagePullSecrets, input.spec.resourceOverrides.proxyDeployment.imagePullSecrets)
  return {
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    metadata: metadata(input, name),
    automountServiceAccountToken: false,
    ...(secrets.length > 0 && { imagePullSecrets: secrets }),
  }
}

function metadata({ kind, name, namespace }: AccessInput, objectName: string) {
  return { name: objectName, namespace, labels: workloadLabels(kind, name) }
}

/** Its own objects by name. No right on Secrets or ConfigMaps: what it needs of them is mounted. */
export function runnerRules({ name, spec }: Pick<AccessInput, 'name' | 'spec'>): PolicyRule[] {
  const { statefulSet, service, headlessService } = serverNames(name)
  const verbs = ['get', 'list', 'watch', 'patch', 'delete']
  return [
    { apiGroups: ['apps'], resources: ['statefulsets'], verbs: ['create'] },
    { apiGroups: ['apps'], resources: ['statefulsets'], resourceNames: [statefulSet], verbs },
    { apiGroups: [''], resources: ['services'], verbs: ['create'] },
    { apiGroups: [''], resources: ['services'], resourceNames: [service, headlessService], verbs },
    { apiGroups: [''], resources: ['pods'], verbs: ['get', 'list', 'watch'] },
    // To tell on its MCPServer why the server does not work.
    { apiGroups: ['events.k8s.io'], resources: ['events'], verbs: ['create', 'patch'] },
    ...(spec.transport === 'stdio' ? stdioRules(statefulSet, spec.backendReplicas) : []),
  ]
}

/**
 * Only stdio is attached to, and only to pods of this server: without a number of replicas there is one. A pod that an earlier runner has
 * spoken to may refuse another handshake; the runner then deletes it.
 */
function stdioRules(statefulSet: string, replicas: number | undefined): PolicyRule[] {
  const resourceNames = Array.from({ length: Math.max(replicas ?? 1, 1) }, (_, index) => `${statefulSet}-${index}`)
  return [
    { apiGroups: [''], resources: ['pods/attach'], resourceNames, verbs: ['create', 'get'] },
    { apiGroups: [''], resources: ['pods'], resourceNames, verbs: ['delete'] },
  ]
}
