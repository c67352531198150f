import { chmod, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { createPeerCheck, PEER_USER_VARIABLE } from '@thv/http/server/peer-check'
import { peerLookupProblem } from '@thv/http/server/peer-lookup'
import { type Clock, systemClock } from '@thv/kernel/clock'
import { errorMessage, ThvError } from '@thv/kernel/errors'
import { createLifecycle, type Lifecycle, type ShutdownReport } from '@thv/kernel/lifecycle'
import {
  bearerToken,
  createEventRecorder,
  createKubeClient,
  createSharedCaches,
  formatKey,
  type KubeClient,
  type ObjectKey,
} from '@thv/kube'
import { makeFolder } from '@thv/programs/make-folder'
import { createProcessGuard } from '@thv/programs/process-guard'
import { type EmbeddedApiServer, startApiServer } from '../apiserver/api-server.ts'
import { imageMapFile } from '../node/images/image-map.ts'
import { createImageResolver, type OwnImage } from '../node/images/image-resolver.ts'
import { claimNetwork } from '../node/network/claim-network.ts'
import { createPodNetwork } from '../node/network/pod-network.ts'
import { startResolver } from '../node/network/resolver.ts'
import { startServiceForwarders } from '../node/network/service-forwarder.ts'
import { startNode } from '../node/node.ts'
import { startControllers } from './all-controllers.ts'
import { applyManifests, type PlatformManifest } from './apply-manifests.ts'

export interface PlatformOptions {
  /** Holds all that the platform keeps. Only one platform can use it at a time. */
  readonly folder: string
  /** Of the API server; without one that of the last start, or a free one. */
  readonly port?: number | undefined
  /** The images whose programs are this repository's. */
  readonly ownImages: readonly OwnImage[]
  /** Objects that come before all others: definitions, and the operator. In this order. */
  readonly manifests: readonly PlatformManifest[]
  /** For the programs that install packages. */
  readonly env: Readonly<Record<string, string | undefined>>
  /** Serve every user of this machine, not only the one who starts the platform, and root. */
  readonly shared?: boolean | undefined
  readonly log: PlatformLog
  /** At `/metrics` of the API server. */
  readonly metricsPage?: (() => string) | undefined
  /** Called when a step of the start begins, with a few words for people. */
  readonly onStep?: ((step: string) => void) | undefined
  readonly clock?: Clock
}

export interface PlatformLog {
  debug(message: string, fields?: Readonly<Record<string, unknown>>): void
  info(message: string, fields?: Readonly<Record<string, unknown>>): void
  warn(message: string, fields?: Readonly<Record<string, unknown>>): void
  error(message: string, fields?: Readonly<Record<string, unknown>>): void
}

/** A Kubernetes of one process: API server, controllers, and a node that runs pods as processes of this machine. */
export interface Platform {
  readonly server: Pick<EmbeddedApiServer, 'url' | 'caPem' | 'adminToken'>
  readonly client: KubeClient
  /** For every process that serves clients of the platform: whom it may serve. */
  readonly peerEnv: Readonly<Record<string, string>>
  /** Ends all pods' processes and leaves the objects, so that the next start goes on from there. Bounded; never rejects. */
  stop(reason?: string): Promise<ShutdownReport>
}

/** Pods get this long to end by themselves. What is left then dies with this process. */
const NODE_STOP_MS = 12_000
const PART_STOP_MS = 3_000
const DRAIN_MS = 20_000
/** One machine, one node. */
const NODE_NAME = 'local'
const REPORTER = 'toolhive.stacklok.dev/platform'

/**
 * Resolves when the API server answers, the node is there and all manifests are applied. Rejects with `data_folder_in_use`,
 * `data_folder_failed`, `network_unavailable` or `listen_failed`, and then leaves nothing running.
 */
export async function startPlatform(options: PlatformOptions): Promise<Platform> {
  const { clock = systemClock } = options
  const life = createLifecycle({ clock, drainMs: DRAIN_MS })
  try {
    return await start(options, life)
  } catch (error) {
    await life.shutdown('the start failed')
    throw error
  }
}

async function start(options: PlatformOptions, life: Lifecycle): Promise<Platform> {
  const { folder, log, clock = systemClock } = options
  const { signal } = life
  const onError = (error: unknown, key?: ObjectKey) => {
    if (!signal.aborted) log.error(errorMessage(error), key === undefined ? {} : { object: formatKey(key) })
  }
  await prepareFolder(folder)
  const claimed = await claimNetwork(folder)
  life.onShutdown('network', () => claimed.release(), { timeoutMs: PART_STOP_MS })
  options.onStep?.('Starting the API server')
  const server = await startApiServer({
    folder: join(folder, 'cluster'),
    serviceRange: claimed.serviceRange,
    clock,
    onError,
    metricsPage: options.metricsPage,
    ...(options.port === undefined ? {} : { port: options.port }),
  })
  life.onShutdown('API server', () => server.close(), { timeoutMs: PART_STOP_MS })
  log.info('the API server answers', { url: server.url, network: claimed.podRange, mode: claimed.mode })

  // Under the names that managed fields have on every cluster, so that these are not taken for users.
  const clientOf = (name: string) => {
    const connection = { server: server.url, tls: { ca: server.caPem }, auth: bearerToken(server.adminToken) }
    const opened = createKubeClient(connection, { clock, userAgent: `${name}/thv` })
    life.onShutdown(name, () => opened.close(), { timeoutMs: PART_STOP_MS })
    return opened
  }
  const client = clientOf('kube-controller-manager')
  const caches = createSharedCaches(client, { clock, onError: (error) => onError(error) })
  life.onShutdown('caches', () => caches.close(), { timeoutMs: PART_STOP_MS })
  const events = createEventRecorder({
    client,
    controller: REPORTER,
    instance: NODE_NAME,
    clock,
    signal,
    onError: (error) => onError(error),
  })
  life.onShutdown('events', (limit) => events.flush(limit), { timeoutMs: PART_STOP_MS })

  const env = { client, caches, events, clock, onError }
  const peerUser = await servedUser(options)
  const peers = peerUser === undefined ? undefined : createPeerCheck({ uid: peerUser, onRefused: (reason) => log.warn(reason) })
  const peerEnv: Record<string, string> = peerUser === undefined ? {} : { [PEER_USER_VARIABLE]: String(peerUser) }
  options.onStep?.('Applying the definitions and the operator')
  const [changed, resolver] = await Promise.all([
    applyManifests(options.manifests, { client, clock, signal }),
    opened(startResolver({ caches, network: claimed, clock, signal, onError, folder }), 'resolver', life),
    opened(startServiceForwarders({ ...env, network: claimed, peers }), 'forwarders', life),
  ])
  log.info('manifests are applied', { changed })

  const guard = createProcessGuard((message) => log.warn(message), clock)
  life.onShutdown('installers', () => guard.close(), { timeoutMs: PART_STOP_MS })
  const images = createImageResolver({
    own: options.ownImages,
    map: imageMapFile(join(folder, 'images.yaml')),
    dataDir: join(folder, 'packages'),
    env: options.env,
    guard,
    log,
    signal,
    clock,
  })
  options.onStep?.('Starting the node')
  const network = await createPodNetwork({ claimed, folder, resolver: resolver.endpoint, clock })
  const { hostname: apiHost, port: apiPort } = new URL(server.url)
  const node = await startNode({
    ...env,
    client: clientOf('kubelet'),
    folder: join(folder, 'node'),
    nodeName: NODE_NAME,
    images,
    network,
    podEnv: { KUBERNETES_SERVICE_HOST: apiHost, KUBERNETES_SERVICE_PORT: apiPort, ...peerEnv },
  })
  server.servePods(node.streams)
  life.onShutdown('node', () => node.stop(), { timeoutMs: NODE_STOP_MS })

  options.onStep?.('Starting the controllers')
  const controlling = new AbortController()
  const controllers = await startControllers(env, controlling.signal, { rootCaPem: server.caPem })
  life.onShutdown(
    'controllers',
    async () => {
      controlling.abort()
      await controllers.done
    },
    { timeoutMs: PART_STOP_MS },
  )
  return { server, client, peerEnv, stop: (reason = 'stop') => life.shutdown(reason) }
}

/** Undefined: everybody on this machine. */
async function servedUser({ shared = false, log }: PlatformOptions): Promise<number | undefined> {
  if (shared) return undefined
  const problem = await peerLookupProblem()
  if (problem === undefined) return process.getuid?.()
  log.warn('every user of this machine can use the servers of this platform', { reason: problem })
  return undefined
}

/** Whatever else fails meanwhile, what has opened is closed again. */
async function opened<T extends { close(): Promise<void> }>(part: Promise<T>, name: string, life: Lifecycle): Promise<T> {
  const open = await part
  life.onShutdown(name, () => open.close(), { timeoutMs: PART_STOP_MS })
  return open
}

/** Write access to it means control of images.yaml, so of the programs that run as this user, and of our keys. */
async function prepareFolder(folder: string): Promise<void> {
  try {
    makeFolder(folder, 0o700)
    const { uid, mode } = await stat(folder)
    const user = process.getuid?.()
    if (user !== undefined && user !== 0 && uid !== user) throw new Error('it belongs to another user')
    if ((mode & 0o022) !== 0) await chmod(folder, mode & 0o755)
  } catch (cause) {
    throw new ThvError('data_folder_failed', `${folder} cannot be used as a data folder`, { cause })
  }
}
