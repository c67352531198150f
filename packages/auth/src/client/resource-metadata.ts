import { LoginFailed } from './login-failed.ts'
import { type OAuthHttp, stringOf, stringsOf } from './oauth-http.ts'

/** A protected resource as its metadata describes it (RFC 9728). */
export interface ResourceMetadata {
  /** For the `resource` parameter (RFC 8707). */
  readonly resource: string
  readonly authorizationServers: readonly string[]
  readonly scopes: readonly string[] | undefined
}

export interface ResourceQuestion {
  /** Of the MCP endpoint. */
  readonly server: string
  /** As the challenge has it. */
  readonly metadataUrl?: string | undefined
  readonly signal?: AbortSignal | undefined
}

const METADATA = '/.well-known/oauth-protected-resource'

/**
 * Finds the metadata of a server: where its challenge says, else below its path, else at its root. Undefined: it has none. Throws LoginFailed
 * for a document that is about another resource, or where the named one is missing.
 */
export async function discoverResource(http: OAuthHttp, question: ResourceQuestion): Promise<ResourceMetadata | undefined> {
  const { server, metadataUrl, signal } = question
  const { origin, pathname } = new URL(server)
  const below = pathname === '/' ? [] : [`${origin}${METADATA}${pathname.replace(/\/$/, '')}`]
  const urls = metadataUrl === undefined ? [...below, `${origin}${METADATA}`] : [metadataUrl]
  for (const url of urls) {
    const { status, json } = await http.send({ url, signal })
    if (status !== 200 || json === undefined) {
      if (metadataUrl === undefined) continue
      throw new LoginFailed(`${new URL(url).origin} does not have the resource metadata that its challenge names (HTTP ${status})`)
    }
    const resource = stringOf(json['resource'])
    if (resource === undefined || !isResourceOf(resource, server))
      throw new LoginFailed(`the resource metadata of ${origin} is about another resource: ${JSON.stringify(resource ?? null)}`)
    return {
      resource,
      authorizationServers: stringsOf(json['authorization_servers']) ?? [],
      scopes: stringsOf(json['scopes_supported']),
    }
  }
  return undefined
}

/** The server itself, or what it lies below: a token for it must not come from the metadata of somebody else. */
export function isResourceOf(resource: string, server: string): boolean {
  const [named, called] = [URL.parse(resource), URL.parse(server)]
  if (named === null || called === null || named.origin !== called.origin || named.hash !== '') return false
  const [path, ours] = [withSlash(named.pathname), withSlash(called.pathname)]
  return ours.startsWith(path) && (named.search === '' || named.search === called.search)
}

function withSlash(path: string): string {
  return path.endsWith('/') ? path : `${path}/`
}
