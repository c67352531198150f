import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock } from '@thv/kernel/clock'
import { ThvError } from '@thv/kernel/errors'
import { mountRoot } from '@thv/kernel/mounted-path'
import { programEnv } from '@thv/kernel/program-scope'
import type { Connection } from '../client/connection.ts'
import { tokenFile } from './token-file.ts'

export interface InClusterOptions {
  env?: Readonly<Record<string, string | undefined>>
  /** Put before `/var/run/secrets/…`. Default: THV_ROOT, else `/`. */
  root?: string
  clock?: Clock
}

const ACCOUNT_FOLDER = 'var/run/secrets/kubernetes.io/serviceaccount'

/** The connection that every pod with a service account is given: address by environment, token and CA by mounted files. */
export async function inClusterConnection({
  env = programEnv(),
  root = mountRoot(env),
  clock,
}: InClusterOptions = {}): Promise<Connection> {
  const host = env.KUBERNETES_SERVICE_HOST
  const port = env.KUBERNETES_SERVICE_PORT
  if (!host || !port) throw missing('KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not both set')
  const server = `https://${host.includes(':') ? `[${host}]` : host}:${port}`
  if (!/^\d{1,5}$/.test(port) || !URL.canParse(server) || /[/?#@]/.test(host)) {
    throw missing('KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT do not make an address')
  }

  const folder = join(root, ACCOUNT_FOLDER)
  const auth = tokenFile({ path: join(folder, 'token'), errorCode: 'in_cluster_config_missing', clock })
  await auth.header() // a pod without a token should hear of it now, not at its first call
  const ca = await readFile(join(folder, 'ca.crt'), 'utf8').catch((cause: unknown) => {
    throw missing(`${join(folder, 'ca.crt')} cannot be read`, cause)
  })
  if (!ca.includes('-----BEGIN CERTIFICATE-----')) throw missing(`${join(folder, 'ca.crt')} holds no PEM certificate`)
  const namespace = (await readOptional(join(folder, 'namespace')))?.trim()
  return { server, tls: { ca }, auth, ...(namespace && { namespace }) }
}

/** Whether the process seems to run in a pod: then a failure of `inClusterConnection` is worth reporting. */
export function isInCluster(env: Readonly<Record<string, string | undefined>> = programEnv()): boolean {
  return Boolean(env.KUBERNETES_SERVICE_HOST && env.KUBERNETES_SERVICE_PORT)
}

async function readOptional(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw missing(`${path} cannot be read`, error)
  }
}

function missing(message: string, cause?: unknown): ThvError {
  return new ThvError('in_cluster_config_missing', `in-cluster configuration: ${message}`, cause === undefined ? {} : { cause })
}
