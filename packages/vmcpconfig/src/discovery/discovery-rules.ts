/** A rule of a Role, in the shape of `rbac.authorization.k8s.io/v1`. */
export interface AccessRule {
  readonly apiGroups: string[]
  readonly resources: string[]
  readonly resourceNames?: string[]
  readonly verbs: string[]
}

export interface AccessRequest {
  /** Of the VirtualMCPServer. */
  readonly name: string
  readonly source: 'discovered' | 'inline'
  /** Secrets and ConfigMaps that members of the group and their authentication name. */
  readonly secrets: readonly string[]
  readonly configMaps: readonly string[]
}

const GROUP = 'toolhive.stacklok.dev'
const READ = ['get', 'list', 'watch']

/** Resources that a virtual server with `source: discovered` watches in its namespace. */
export const DISCOVERED_RESOURCES = [
  'mcpgroups',
  'mcpservers',
  'mcpremoteproxies',
  'mcpserverentries',
  'mcpexternalauthconfigs',
  'mcptoolconfigs',
] as const

/** ConfigMap with the configuration of a virtual server, and its key. */
export const configMapName = (server: string) => `${server}-vmcp-config`
export const CONFIG_KEY = 'config.yaml'
/** Lease of the replica that writes the status. */
export const leaseName = (server: string) => `${server}-vmcp`

/**
 * Every right that the pods of a virtual server need, and no other. Secrets and ConfigMaps are listed and watched one by one, by the field selector
 * `metadata.name`. With `inline` nothing of others is read.
 */
export function accessRules({ name, source, secrets, configMaps }: AccessRequest): AccessRule[] {
  const own: AccessRule[] = [
    { apiGroups: [GROUP], resources: ['virtualmcpservers'], resourceNames: [name], verbs: ['get'] },
    { apiGroups: [GROUP], resources: ['virtualmcpservers/status'], resourceNames: [name], verbs: ['patch'] },
    { apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: ['create'] },
    { apiGroups: ['coordination.k8s.io'], resources: ['leases'], resourceNames: [leaseName(name)], verbs: ['get', 'update'] },
    { apiGroups: ['events.k8s.io'], resources: ['events'], verbs: ['create', 'patch'] },
  ]
  if (source === 'inline') return own
  return [
    ...own,
    { apiGroups: [GROUP], resources: [...DISCOVERED_RESOURCES], verbs: READ },
    ...named('configmaps', [configMapName(name), ...configMaps]),
    ...named('secrets', secrets),
  ]
}

/** A rule without names would be about all of them. */
function named(resource: string, names: readonly string[]): AccessRule[] {
  const resourceNames = [...new Set(names)].sort()
  return resourceNames.length === 0 ? [] : [{ apiGroups: [''], resources: [resource], resourceNames, verbs: READ }]
}
