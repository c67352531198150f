import { type CredentialStore, loginFor, type StoredLogin, withoutLogin } from '@thv/auth/client/credential-store'
import { createOAuthHttp } from '@thv/auth/client/oauth-http'
import { revokeLogin } from '@thv/auth/client/revoke-login'
import { createOutbound } from '@thv/http/outbound/outbound'
import { ThvError } from '@thv/kernel/errors'
import type { ClusterFlags } from './cluster/open-cluster.ts'
import { createCredentialFile, credentialPath } from './login/credential-file.ts'
import type { ProgramEnv } from './program.ts'
import { resolveServer } from './resolve-server.ts'

export interface LogoutOptions extends ClusterFlags {
  readonly all?: boolean
}

/** thv logout NAME|URL, thv logout --all */
export async function runLogout(server: string | undefined, options: LogoutOptions, env: ProgramEnv): Promise<void> {
  if ((server === undefined) !== (options.all === true)) throw new ThvError('usage', 'name a server, or say --all')
  const store = createCredentialFile(credentialPath(env.variables))
  const url = server === undefined ? undefined : new URL(await resolveServer(server, options, env)).href
  const logins = await loginsAt(store, url)
  if (logins.length === 0) env.err(url === undefined ? 'There is no login.\n' : `There is no login to ${url}\n`)
  for (const login of logins) await logOut(login, store, env)
}

async function loginsAt(store: CredentialStore, url: string | undefined): Promise<readonly StoredLogin[]> {
  const credentials = await store.read()
  const found = url === undefined ? undefined : loginFor(credentials, url)
  return url === undefined ? credentials.logins : found === undefined ? [] : [found]
}

/** The tokens are forgotten here even if the authorization server does not answer. */
async function logOut(login: StoredLogin, store: CredentialStore, env: ProgramEnv): Promise<void> {
  const signal = env.signal ?? AbortSignal.timeout(60_000)
  await store.update(async (credentials) => withoutLogin(credentials, login), signal)
  await using outbound = createOutbound()
  const isRevoked = await revokeLogin(createOAuthHttp({ outbound, allowLoopback: true }), login, signal)
  env.err(
    `Logged out of ${login.servers.join(', ')}${isRevoked ? '' : `; ${login.issuer} was not told, so the tokens live until they expire`}\n`,
  )
}
