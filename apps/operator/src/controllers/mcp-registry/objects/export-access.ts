import type { PolicyRule, Role, RoleBinding } from '@thv/kube'
import type { CanonicalMCPRegistrySpec } from '@thv/resources/kinds/mcp-registry/normalise'
import type { ExportScope } from '../../../export/export-scope.ts'
import { exportLease } from '../config/export-source.ts'
import { apiLabels, registryNames } from './names.ts'

interface Place {
  readonly name: string
  readonly namespace: string
}

const RBAC_GROUP = 'rbac.authorization.k8s.io'
const RBAC = `${RBAC_GROUP}/v1`

const READ = ['get', 'list', 'watch']

/** The rights to read what is exported. Secrets and ConfigMaps are no part of it. */
export const readerRules: readonly PolicyRule[] = [
  { apiGroups: ['toolhive.stacklok.dev'], resources: ['mcpservers', 'mcpremoteproxies', 'virtualmcpservers'], verbs: READ },
  { apiGroups: [''], resources: ['services'], verbs: READ },
  { apiGroups: ['gateway.networking.k8s.io'], resources: ['httproutes', 'gateways', 'referencegrants'], verbs: READ },
]

export interface ExportAccess {
  readonly role: Role
  readonly binding: RoleBinding
}

/** Of the account of the API pods, in the namespace of the registry; undefined when the server reads nothing there. */
export function ownAccess(place: Place, spec: CanonicalMCPRegistrySpec, scope: ExportScope): ExportAccess | undefined {
  if (scope.mode !== 'server') return undefined
  const reads = scope.namespaces !== 'all' && scope.namespaces.includes(place.namespace)
  const rules = [...(reads ? readerRules : []), ...(spec.databaseConfig === undefined ? [] : leaseRules(place.name))]
  return rules.length === 0 ? undefined : accessIn(place, { namespace: place.namespace, name: registryNames(place.name).exportRole, rules })
}

/** For the namespaces other than its own, by name. They have no owner, which an object of another namespace cannot be. */
export function foreignAccess(place: Place, scope: ExportScope | undefined): ExportAccess[] {
  if (scope?.mode !== 'server' || scope.namespaces === 'all') return []
  return scope.namespaces
    .filter((namespace) => namespace !== place.namespace)
    .map((namespace) => accessIn(place, { namespace, name: foreignName(place), rules: [...readerRules] }))
}

/** No namespace has a dot, so two registries never share a name. */
export function foreignName({ namespace, name }: Place): string {
  return `${namespace}.${name}.registry-export`
}

/** The binding for all namespaces; undefined when some are named. */
export function clusterAccess(place: Place, scope: ExportScope | undefined, clusterRole: string) {
  if (scope?.mode !== 'server' || scope.namespaces !== 'all') return undefined
  return {
    apiVersion: RBAC,
    kind: 'ClusterRoleBinding',
    metadata: { name: foreignName(place), labels: apiLabels(place.name) },
    roleRef: { apiGroup: RBAC_GROUP, kind: 'ClusterRole', name: clusterRole },
    subjects: subjects(place),
  }
}

function accessIn(place: Place, { namespace, name, rules }: { namespace: string; name: string; rules: PolicyRule[] }): ExportAccess {
  const metadata = { name, namespace, labels: apiLabels(place.name) }
  return {
    role: { apiVersion: RBAC, kind: 'Role', metadata, rules },
    binding: {
      apiVersion: RBAC,
      kind: 'RoleBinding',
      metadata,
      roleRef: { apiGroup: RBAC_GROUP, kind: 'Role', name },
      subjects: subjects(place),
    },
  }
}

function subjects({ name, namespace }: Place) {
  return [{ kind: 'ServiceAccount', name: registryNames(name).account, namespace }]
}

function leaseRules(name: string): PolicyRule[] {
  const group = { apiGroups: ['coordination.k8s.io'], resources: ['leases'] }
  return [
    { ...group, verbs: ['create'] },
    { ...group, resourceNames: [exportLease(name)], verbs: ['get', 'update'] },
  ]
}
