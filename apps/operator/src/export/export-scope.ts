import type { CanonicalMCPRegistrySpec } from '@thv/resources/kinds/mcp-registry/normalise'
import type { OperatorSettings } from '../operator-settings.ts'

export type CrossNamespaceGateway = NonNullable<CanonicalMCPRegistrySpec['export']>['crossNamespaceGateway']

/** The part of the cluster that a registry exports. */
export interface ExportScope {
  readonly mode: 'server' | 'operator'
  /** Sorted; `all`: every namespace. */
  readonly namespaces: readonly string[] | 'all'
  readonly crossNamespaceGateway: CrossNamespaceGateway
}

export interface RefusedExport {
  readonly reason: 'NoServer' | 'ExportNamespaceNotAllowed'
  readonly message: string
}

export type ExportDecision =
  | { readonly kind: 'none' }
  | { readonly kind: 'refused'; readonly refusal: RefusedExport }
  | { readonly kind: 'export'; readonly scope: ExportScope }

export type ExportSettings = Pick<OperatorSettings, 'registryExport' | 'watchNamespaces'>

const NONE: ExportDecision = { kind: 'none' }

/** Whether and from where a registry exports. Namespaces other than its own need the administrator's permission. Pure. */
export function decideExport(spec: CanonicalMCPRegistrySpec, own: string, settings: ExportSettings): ExportDecision {
  const { export: policy, api } = spec
  if (policy === undefined || policy.mode === 'none' || 'configYAML' in spec) return NONE
  if (policy.mode === 'server' && !api.enabled)
    return refused('NoServer', 'Nothing is exported: mode server needs spec.api.enabled, mode operator does not.')
  const { crossNamespaceGateway, mode } = policy
  const wanted = policy.namespaces.length === 0 ? [own] : [...new Set(policy.namespaces)].sort()
  const outside = wanted.filter((namespace) => !isAllowed(namespace, own, settings))
  if (outside.length > 0) return refused('ExportNamespaceNotAllowed', outsideMessage(outside))
  return { kind: 'export', scope: { mode, namespaces: wanted.includes('*') ? 'all' : wanted, crossNamespaceGateway } }
}

function isAllowed(namespace: string, own: string, { registryExport, watchNamespaces }: ExportSettings): boolean {
  if (namespace === own) return true
  const allowed = registryExport.namespaces
  if (namespace === '*') return allowed === 'all' && watchNamespaces === undefined
  return (allowed === 'all' || allowed.includes(namespace)) && (watchNamespaces === undefined || watchNamespaces.includes(namespace))
}

const MAX_NAMED = 10

function outsideMessage(outside: readonly string[]): string {
  const more = outside.length - MAX_NAMED
  const names = `${outside.slice(0, MAX_NAMED).join(', ')}${more > 0 ? ` and ${more} more` : ''}`
  return (
    `Nothing is exported: spec.export.namespaces names ${names}. An administrator allows other namespaces with the chart value ` +
    'operator.registry.exportNamespaces, and the operator must watch them.'
  )
}

function refused(reason: RefusedExport['reason'], message: string): ExportDecision {
  return { kind: 'refused', refusal: { reason, message } }
}
