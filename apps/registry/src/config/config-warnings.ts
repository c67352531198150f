import type { ConfigFile } from './config-schema.ts'
import type { RegistryConfig } from './registry-config.ts'

/** What a good file says that changes nothing: above all what its author may believe to protect something. */
export function configWarnings({ auth }: ConfigFile, { sources, registries, auth: { mode } }: RegistryConfig): string[] {
  const warnings: string[] = []
  const unused = mode !== 'anonymous' ? [] : (['oauth', 'authz', 'publicPaths'] as const).filter((key) => isGiven(auth[key]))
  if (unused.length > 0) {
    const keys = unused.map((key) => `auth.${key}`).join(' and ')
    warnings.push(`${keys} ${unused.length === 1 ? 'has' : 'have'} no effect in mode anonymous`)
  }
  const claimed = [...sources, ...registries].some(({ claims }) => claims !== undefined)
  if (claimed && (mode === 'anonymous' || auth.authz === undefined))
    warnings.push('claims hide nothing without auth.authz: everybody who may read sees every source and registry')
  return warnings
}

function isGiven(value: unknown): boolean {
  return Array.isArray(value) ? value.length > 0 : value !== undefined
}
