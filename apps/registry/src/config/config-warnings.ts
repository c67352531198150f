import type { ConfigFile } from './config-schema.ts'
import type { RegistryConfig } from './registry-config.ts'

/** What a good file says that changes nothing, or more than it seems: above all where its author may believe to protect or to show something. */
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
  if (mode === 'oauth' && auth.authz !== undefined) {
    const hidden = [...unclaimed(sources, 'source'), ...unclaimed(registries, 'registry')]
    const more = hidden.length > MAX_NAMED ? ` and ${hidden.length - MAX_NAMED} more` : ''
    if (hidden.length > 0)
      warnings.push(`with auth.authz only super admins see what has no claims: ${hidden.slice(0, MAX_NAMED).join(', ')}${more}`)
  }
  return warnings
}

const MAX_NAMED = 6

function unclaimed(items: readonly { readonly name: string; readonly claims?: unknown }[], kind: string): string[] {
  return items.filter(({ claims }) => claims === undefined).map(({ name }) => `${kind} ${name}`)
}

function isGiven(value: unknown): boolean {
  return Array.isArray(value) ? value.length > 0 : value !== undefined
}
