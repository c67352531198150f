import { existsSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { errorMessage, isThvError, ThvError } from '@thv/kernel/errors'
import { createKubeClient, type KubeClient } from '@thv/kube/client/client'
import { KubeApiError } from '@thv/kube/client/kube-api-error'
import { loadKubeconfig } from '@thv/kube/config/kubeconfig'
import type { ProgramEnv } from '../program.ts'

/** Options that all commands share which speak to an API server. */
export interface ClusterFlags {
  readonly kubeconfig?: string | undefined
  readonly context?: string | undefined
  readonly dataDir?: string | undefined
  readonly namespace?: string | undefined
}

export interface OpenCluster {
  readonly client: KubeClient
  /** The namespace of `-n`, else of the kubeconfig, else `default`. */
  readonly namespace: string
}

export const DATA_FOLDER = '.thv'
export const KUBECONFIG_FILE = 'kubeconfig'

/** Where the way to the server is written down, and whether it is a platform that runs on this machine. */
interface Place {
  /** Undefined: KUBECONFIG, which may name several, or the user's own. */
  readonly path: string | undefined
  readonly shown: string
  readonly isPlatform: boolean
}

/**
 * Connects to the API server for the time of some work: `--kubeconfig`, else the platform whose data folder is here or above, else
 * KUBECONFIG or ~/.kube/config. A platform that does not run is an error, not a reason to look further: a command must not reach another
 * cluster because this one is down.
 */
export async function withCluster<T>(flags: ClusterFlags, env: ProgramEnv, work: (cluster: OpenCluster) => Promise<T>): Promise<T> {
  const place = findPlace(flags, env)
  const connection = await loadKubeconfig({
    ...(place.path !== undefined && { path: place.path }),
    ...(flags.context !== undefined && { context: flags.context }),
    env: env.variables,
    home: homeOf(env),
  }).catch((error: unknown) => {
    throw notFound(error, place)
  })
  const client = createKubeClient(connection, {
    userAgent: 'thv/0.1',
    onWarning: (text) => env.err(`Warning: ${text}\n`),
    // Somebody waits, and can repeat the command.
    retry: { maxAttempts: 2 },
  })
  try {
    return await work({ client, namespace: flags.namespace ?? connection.namespace ?? 'default' })
  } catch (error) {
    throw explained(error, { place, server: connection.server })
  } finally {
    await client.close()
  }
}

/** The data folder of the platform here or in a folder above; undefined where there is none. */
export function findDataFolder(cwd: string): string | undefined {
  for (let folder = cwd; ; folder = dirname(folder)) {
    const candidate = join(folder, DATA_FOLDER)
    if (existsSync(join(candidate, KUBECONFIG_FILE))) return candidate
    if (folder === dirname(folder)) return undefined
  }
}

function findPlace({ kubeconfig, dataDir }: ClusterFlags, env: ProgramEnv): Place {
  if (kubeconfig !== undefined) return { path: resolve(env.cwd, kubeconfig), shown: kubeconfig, isPlatform: false }
  const folder = dataDir === undefined ? findDataFolder(env.cwd) : resolve(env.cwd, dataDir)
  if (folder !== undefined) {
    const path = join(folder, KUBECONFIG_FILE)
    return { path, shown: path, isPlatform: true }
  }
  return { path: undefined, shown: env.variables['KUBECONFIG'] ? 'the files of KUBECONFIG' : '~/.kube/config', isPlatform: false }
}

function homeOf(env: ProgramEnv): string {
  return env.variables['HOME'] ?? homedir()
}

function notFound(error: unknown, { path, isPlatform }: Place): unknown {
  if (!isThvError(error, 'kubeconfig_invalid') || !error.message.endsWith('file: does not exist')) return error
  const what =
    path === undefined
      ? `no local platform (${DATA_FOLDER}) in this folder or above, and no kubeconfig`
      : isPlatform
        ? `no platform has been started in ${dirname(path)}`
        : `kubeconfig ${path} does not exist`
  return new ThvError('kubeconfig_invalid', `${what}; start a platform with "thv up", or set --kubeconfig`, {
    cause: error.cause,
  })
}

/** Keeps the code; says which server was meant and what to do. */
function explained(error: unknown, { place, server }: { place: Place; server: string }): unknown {
  if (isThvError(error, 'kube_unreachable')) {
    const what = place.isPlatform
      ? `the platform in ${dirname(place.shown)} is not responding; start it with "thv up"`
      : `the API server ${server} of ${place.shown} is not responding; check that it is running, or set --kubeconfig`
    return new ThvError('kube_unreachable', place.isPlatform ? what : `${what} (${errorMessage(error)})`, { details: { ...error.details } })
  }
  if (error instanceof KubeApiError && error.status === 401)
    return new ThvError('kube_status', `${server} rejected the credentials of ${place.shown}`, { details: { ...error.details } })
  return error instanceof KubeApiError ? new ThvError('kube_status', serverMessage(error), { details: { ...error.details } }) : error
}

/** The server's message, without the call that our client puts before it. */
export function serverMessage(error: KubeApiError): string {
  const { verb, target } = error.details
  const prefix = `${verb} ${target}: `
  const text = error.message.startsWith(prefix) ? error.message.slice(prefix.length) : error.message
  return text.replace(/ \(\d{3}( \w+)?\)$/, '')
}
