import { isAbsolute } from 'node:path'
import { isThisMachine } from '@thv/auth/incoming/incoming-provider'
import { cleanPath } from '@thv/auth/incoming/public-paths'
import type { AuthConfig, OAuthConfig, ProviderConfig } from '../access/auth-config.ts'
import type { AuthFile } from './config-schema.ts'
import { type NormaliseContext, problemAt } from './normalise-context.ts'

/** The rules of the `auth` block. Like `normaliseConfig` it takes what may be of a wrong shape. */
export function normaliseAuth(auth: AuthFile | undefined, context: NormaliseContext): AuthConfig | undefined {
  if (!auth || typeof auth !== 'object') return undefined
  const { oauth } = auth
  const providers = Array.isArray(oauth?.providers) ? oauth.providers : []
  if (auth.mode === 'oauth' && providers.length === 0)
    problemAt(context, 'auth.oauth.providers', 'mode oauth needs at least one provider; "auth: {mode: anonymous}" disables authentication')
  for (const [index, provider] of providers.entries()) providerRules(provider, `auth.oauth.providers[${index}]`, context)
  uniqueProviders(providers, context)
  urlRule(oauth?.resourceUrl, 'auth.oauth.resourceUrl', { ...context, insecureUrls: true })
  publicPathRules(auth.publicPaths, context)
  writeTokenRule(auth, context)
  for (const role of Object.keys(auth.authz?.roles ?? {})) emptyClaims(auth, role, context)
  return {
    mode: auth.mode,
    publicPaths: auth.publicPaths,
    ...(auth.writeTokenFile !== undefined && { writeTokenFile: auth.writeTokenFile }),
    ...(auth.mode === 'oauth' && oauth && { oauth: oauth satisfies OAuthConfig }),
    ...(auth.authz && { authz: auth.authz }),
  }
}

function writeTokenRule({ mode, writeTokenFile: file }: AuthFile, context: NormaliseContext): void {
  if (typeof file !== 'string' || file === '') return
  if (mode === 'oauth') problemAt(context, 'auth.writeTokenFile', 'is for mode anonymous: in mode oauth the providers issue the tokens')
  else if (!isAbsolute(file)) problemAt(context, 'auth.writeTokenFile', 'must be an absolute path')
}

function providerRules(provider: ProviderConfig | undefined, path: string, context: NormaliseContext): void {
  if (!provider) return
  for (const key of ['issuerUrl', 'jwksUrl', 'introspectionUrl'] as const) urlRule(provider[key], `${path}.${key}`, context)
  for (const key of ['clientSecretFile', 'caCertPath', 'authTokenFile'] as const) {
    const file = provider[key]
    if (typeof file === 'string' && file !== '' && !isAbsolute(file)) problemAt(context, `${path}.${key}`, 'must be an absolute path')
  }
  if ((provider.clientId === undefined) !== (provider.clientSecretFile === undefined)) {
    const missing = provider.clientId === undefined ? 'clientId' : 'clientSecretFile'
    problemAt(context, `${path}.${missing}`, 'is required: clientId and clientSecretFile go together')
  }
  if (provider.clientId !== undefined && provider.introspectionUrl === undefined)
    problemAt(context, `${path}.clientId`, 'is used for introspection only: introspectionUrl is missing')
}

function uniqueProviders(providers: readonly (ProviderConfig | undefined)[], context: NormaliseContext): void {
  const names = providers.map((provider) => provider?.name)
  for (const [index, name] of names.entries())
    if (typeof name === 'string' && names.indexOf(name) !== index)
      problemAt(context, `auth.oauth.providers[${index}].name`, `is the name of auth.oauth.providers[${names.indexOf(name)}] already`)
}

/** An address is not repeated: it may hold a password. */
function urlRule(text: unknown, path: string, context: NormaliseContext): void {
  if (typeof text !== 'string' || text === '') return
  const url = URL.parse(text)
  if (!url || !/^https?:\/\//i.test(text)) problemAt(context, path, 'must be an absolute http or https URL')
  else if (url.username !== '' || url.password !== '') problemAt(context, path, 'must not carry a user name or password')
  else if (url.protocol === 'http:' && !context.insecureUrls && !isThisMachine(url))
    problemAt(context, path, 'must be https (http is for this machine, or with THV_REGISTRY_INSECURE_URL=true)')
}

/** One that is cleaned to "/" would open everything; one with escapes or wildcards opens nothing, and looks as if it did. */
function publicPathRules(paths: unknown, context: NormaliseContext): void {
  for (const [index, path] of (Array.isArray(paths) ? paths : []).entries()) {
    if (typeof path !== 'string' || !path.startsWith('/')) continue
    const plain = path === '/' || cleanPath(path) === path.replace(/\/$/, '')
    if (!plain || /\/\/|[%?#*\s\\]/.test(path))
      problemAt(
        context,
        `auth.publicPaths[${index}]`,
        'must be a plain path: no escapes, wildcards, query, "//", "." or ".."; all below it is public too',
      )
  }
}

/** An empty set of claims matches no caller: it is a mistake, or worse, believed to match every caller. */
function emptyClaims(auth: AuthFile, role: string, context: NormaliseContext): void {
  const maps: unknown = auth.authz?.roles?.[role as keyof typeof auth.authz.roles]
  if (!Array.isArray(maps)) return
  for (const [index, claims] of maps.entries())
    if (claims !== null && typeof claims === 'object' && Object.keys(claims).length === 0)
      problemAt(context, `auth.authz.roles.${role}[${index}]`, 'has no claims, so it would match no caller')
}
