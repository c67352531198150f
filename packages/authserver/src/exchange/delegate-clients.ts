import { readFile } from 'node:fs/promises'
import { ThvError } from '@thv/kernel/errors'
import { mountedPath } from '@thv/kernel/mounted-path'
import type { DelegateClientConfig } from '@thv/runconfig/auth-server-config'
import { TOKEN_EXCHANGE } from './grant-types.ts'

/** Fixed clients that may exchange tokens and nothing else. */
export interface DelegateClients {
  find(id: string): DelegateClientConfig | undefined
  /** For the library. A file is read every time, so that it can be replaced. */
  metadata(id: string): Promise<Record<string, unknown> | undefined>
}

const MIN_SECRET = 32

/** Throws `run_config_invalid` naming the variable or file of a secret that is missing or short. */
export async function createDelegateClients(
  clients: readonly DelegateClientConfig[],
  env: Readonly<Record<string, string | undefined>>,
): Promise<DelegateClients> {
  const known = new Map(clients.map((client) => [client.client_id, client]))
  for (const client of clients) await secretOf(client, env)
  return {
    find: (id) => known.get(id),
    async metadata(id) {
      const client = known.get(id)
      if (client === undefined) return undefined
      return {
        client_id: id,
        client_secret: await secretOf(client, env),
        token_endpoint_auth_method: 'client_secret_basic',
        application_type: 'web',
        grant_types: [TOKEN_EXCHANGE],
        response_types: [],
        redirect_uris: [],
      }
    },
  }
}

async function secretOf(client: DelegateClientConfig, env: Readonly<Record<string, string | undefined>>): Promise<string> {
  const { client_id: id, client_secret_file: file, client_secret_env_var: variable = '' } = client
  const place = file ?? variable
  const invalid = (text: string, cause?: unknown) =>
    new ThvError('run_config_invalid', `embedded_auth_server_config.delegate_clients: the secret of ${id} in ${place} ${text}`, { cause })
  const secret =
    file === undefined
      ? (env[variable] ?? '')
      : (
          await readFile(mountedPath(file), 'utf8').catch((cause: unknown) => {
            throw invalid('cannot be read', cause)
          })
        ).trim()
  if (secret.length < MIN_SECRET) throw invalid(`must have at least ${MIN_SECRET} characters`)
  return secret
}
