import { MANAGED_BY, MANAGED_BY_LABEL, MANAGED_LABEL } from '../../../caches/cache-shapes.ts'

/* Names and labels of the objects of an MCPRegistry, all in its namespace. */

export interface RegistryNames {
  readonly deployment: string
  readonly service: string
  readonly account: string
  readonly config: string
  /** The first shard; others have a number behind it. */
  readonly storage: string
  /** Role and RoleBinding of a server that reads the cluster. */
  readonly exportRole: string
  /** The first shard of the servers that the operator exports. */
  readonly export: string
}

export function registryNames(name: string): RegistryNames {
  return {
    deployment: `${name}-api`,
    service: `${name}-api`,
    account: `${name}-registry-api`,
    config: `${name}-registry-server-config`,
    storage: `${name}-registry-storage`,
    exportRole: `${name}-registry-export`,
    export: `${name}-registry-export`,
  }
}

/** The first shard of the merged data of one entry with a selector. */
export function aggregateName(registry: string, entry: string): string {
  return `${registry}-${entry}-aggregated`
}

export const API_PORT = 8080
/** Health, metrics and the state of the sources; no Service leads to it. */
export const INTERNAL_PORT = 8081

/** ConfigMaps with registry data. */
export type DataComponent = 'registry-storage' | 'registry-aggregate' | 'registry-export'
export type RegistryComponent = 'registry-api' | DataComponent

export const COMPONENT_LABEL = 'app.kubernetes.io/component'

/** The labels that select the API pods. */
export function podSelector(name: string): Record<string, string> {
  return { 'app.kubernetes.io/name': registryNames(name).deployment, [COMPONENT_LABEL]: 'registry-api' }
}

export function apiLabels(name: string): Record<string, string> {
  return { ...podSelector(name), ...ownLabels(name) }
}

/** Pods are found by these in the operator's cache. */
export function podLabels(name: string): Record<string, string> {
  return { ...apiLabels(name), [MANAGED_LABEL]: 'true', 'toolhive-name': name }
}

export function dataLabels(name: string, component: DataComponent): Record<string, string> {
  return {
    'app.kubernetes.io/name': 'toolhive-operator',
    [COMPONENT_LABEL]: component,
    ...ownLabels(name),
    'toolhive.stacklok.dev/registry': name,
  }
}

function ownLabels(name: string): Record<string, string> {
  return {
    'app.kubernetes.io/managed-by': 'toolhive-operator',
    [MANAGED_BY_LABEL]: MANAGED_BY,
    'toolhive.stacklok.io/registry-name': name,
  }
}

export const CONTENT_CHECKSUM = 'toolhive.stacklok.dev/content-checksum'
export const CONFIG_HASH = 'toolhive.stacklok.dev/config-hash'
