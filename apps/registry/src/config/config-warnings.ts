import type { AuthFile, ConfigFile } from './config-schema.ts'
import type { RegistryConfig } from './registry-config.ts'

/** Warnings about a valid file: settings without effect, or with more effect than it seems, above all where they seem to protect or to show something. */
export function configWarnings({ auth }: ConfigFile, config: RegistryConfig): string[] {
  const { mode } = config.auth
  if (mode === 'anonymous') return [...unusedKeys(auth), ...uselessClaims(config)]
  return auth.authz === undefined ? [...openIssuers(auth), ...uselessClaims(config)] : unseen(config)
}

function unusedKeys(auth: AuthFile): string[] {
  const unused = (['oauth', 'authz', 'publicPaths'] as const).filter((key) => isGiven(auth[key]))
  if (unused.length === 0) return []
  const keys = unused.map((key) => `auth.${key}`).join(' and ')
  return [`${keys} ${unused.length === 1 ? 'has' : 'have'} no effect in mode anonymous`]
}

function isGiven(value: unknown): boolean {
  return Array.isArray(value) ? value.length > 0 : value !== undefined
}

/** An issuer that requires a token also needs its audience. */
const FOR_ANYBODY = ['token.actions.githubusercontent.com', 'gitlab.com', 'accounts.google.com']

function openIssuers({ oauth }: AuthFile): string[] {
  const issuers = (oauth?.providers ?? []).map(({ issuerUrl }) => issuerUrl)
  return issuers
    .filter((issuer) => FOR_ANYBODY.includes(URL.parse(issuer)?.hostname ?? ''))
    .map((issuer) => `anybody can have a token of ${issuer}, and may do everything without auth.authz`)
}

function uselessClaims({ sources, registries }: RegistryConfig): string[] {
  const claimed = [...sources, ...registries].some(({ claims }) => claims !== undefined)
  return claimed ? ['claims hide nothing without auth.authz: everybody who may read sees every source and registry'] : []
}

const MAX_NAMED = 6

function unseen({ sources, registries }: RegistryConfig): string[] {
  const hidden = [...unclaimed(sources, 'source'), ...unclaimed(registries, 'registry')]
  if (hidden.length === 0) return []
  const more = hidden.length > MAX_NAMED ? ` and ${hidden.length - MAX_NAMED} more` : ''
  return [`with auth.authz only super admins see what has no claims: ${hidden.slice(0, MAX_NAMED).join(', ')}${more}`]
}

function unclaimed(items: readonly { readonly name: string; readonly claims?: unknown }[], kind: string): string[] {
  return items.filter(({ claims }) => claims === undefined).map(({ name }) => `${kind} ${name}`)
}
