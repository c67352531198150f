import type { OAuthClientId } from './oauth-client-id.ts'

/** Tokens of one user for one protected resource, from one authorization server. */
export interface StoredLogin {
  readonly issuer: string
  /** Undefined: the server has no resource metadata (revision 2025-03-26). */
  readonly resource?: string | undefined
  /** Addresses of the MCP servers that these tokens are for. */
  readonly servers: readonly string[]
  readonly client: OAuthClientId
  readonly tokenEndpoint: string
  readonly revocationEndpoint?: string | undefined
  readonly accessToken: string
  readonly refreshToken?: string | undefined
  /** From then on the access token is replaced before it is used; epoch milliseconds. */
  readonly renewAt?: number | undefined
  /** The scopes that were asked for. */
  readonly scopes: readonly string[]
}

export interface Credentials {
  readonly logins: readonly StoredLogin[]
  /** By issuer: an id is never shown to another one. */
  readonly clients: Readonly<Record<string, OAuthClientId>>
}

export const NO_CREDENTIALS: Credentials = { logins: [], clients: {} }

export interface CredentialStore {
  read(): Promise<Credentials>
  /** `change` sees what is stored and returns what is to be stored. No other process changes anything in between. */
  update(change: (credentials: Credentials) => Promise<Credentials>, signal: AbortSignal): Promise<void>
}

export function loginFor({ logins }: Credentials, server: string): StoredLogin | undefined {
  return logins.find(({ servers }) => servers.includes(server))
}

/** Replaces what is stored for the same issuer and resource, and takes its servers from any other. */
export function withLogin(credentials: Credentials, login: StoredLogin): Credentials {
  const others = credentials.logins.filter((other) => !isSameLogin(other, login))
  const same = credentials.logins.find((other) => isSameLogin(other, login))
  const servers = [...new Set([...login.servers, ...(same?.servers ?? [])])]
  const kept = others
    .map((other) => ({ ...other, servers: other.servers.filter((server) => !login.servers.includes(server)) }))
    .filter((other) => other.servers.length > 0)
  return { logins: [...kept, { ...login, servers }], clients: { ...credentials.clients, [login.issuer]: login.client } }
}

/** A client ID goes with the last login at its issuer. */
export function withoutLogin(credentials: Credentials, login: StoredLogin): Credentials {
  const logins = credentials.logins.filter((other) => !isSameLogin(other, login))
  const { [login.issuer]: _, ...clients } = credentials.clients
  return { logins, clients: logins.some(({ issuer }) => issuer === login.issuer) ? credentials.clients : clients }
}

export function isSameLogin(one: StoredLogin, other: Pick<StoredLogin, 'issuer' | 'resource'>): boolean {
  return one.issuer === other.issuer && one.resource === other.resource
}

/** Forgotten when the process ends. */
export function createMemoryCredentials(): CredentialStore {
  let credentials = NO_CREDENTIALS
  let last: Promise<unknown> = Promise.resolve()
  return {
    read: async () => credentials,
    async update(change) {
      const run = last.then(async () => {
        credentials = await change(credentials)
      })
      last = run.catch(() => {})
      await run
    },
  }
}
