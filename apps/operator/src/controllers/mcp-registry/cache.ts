import { normaliseMcpRegistry } from '@thv/resources/kinds/mcp-registry/normalise'
import { type MCPRegistry, mcpRegistryType } from '@thv/resources/kinds/mcp-registry/schema'
import type { CacheSpec } from '../../caches/cache-spec.ts'
import type { References } from '../../references/references.ts'
import { templateSecrets } from '../../references/template-secrets.ts'
import { certificateKeys, secretKeys } from './objects/pod-volumes.ts'

export const cache: CacheSpec<MCPRegistry> = { type: mcpRegistryType, references: referencesOfRegistry }

/** ConfigMaps and Secrets that the spec names; those of a selector are found by their labels. */
export function referencesOfRegistry(registry: MCPRegistry): References {
  const { spec } = normaliseMcpRegistry(registry)
  const { databaseConfig: database, pgpassSecretRef } = spec
  const source = 'source' in spec ? spec.source : undefined
  const entries = 'registries' in spec ? spec.registries : []
  const present = (names: readonly (string | undefined)[]): string[] => [...new Set(names.filter((name) => name !== undefined))]
  return {
    groups: [],
    toolConfigs: [],
    externalAuthConfigs: [],
    configMaps: present([
      source?.configMap?.name,
      ...entries.map(({ configMapRef }) => configMapRef?.name),
      ...certificateKeys(spec).keys(),
    ]),
    secrets: present([
      source?.git?.auth?.passwordSecretRef.name,
      database?.dbAppUserPasswordSecretRef.name,
      database?.dbMigrationUserPasswordSecretRef.name,
      pgpassSecretRef?.name,
      ...secretKeys(spec).keys(),
      ...templateSecrets(spec.podTemplateSpec),
    ]),
  }
}
