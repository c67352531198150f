import type { PeerCheck } from '@thv/http/server/peer-check'
import type { Clock } from '@thv/kernel/clock'
import { errorMessage, isThvError } from '@thv/kernel/errors'
import {
  createController,
  done,
  type EventRecorder,
  endpointSlices,
  formatKey,
  isNotFound,
  type KubeClient,
  type ObjectKey,
  type Outcome,
  requeueAfter,
  retry,
  type Service,
  type SharedCaches,
  services,
  watchMapped,
  watchSelf,
} from '@thv/kube'
import type { ClaimedNetwork } from './claim-network.ts'
import { localAddressPatch, localPortOf } from './local-address.ts'
import { PortForwarder } from './port-forwarder.ts'
import { affinityMsOf, backendsOf, endpointFilter, type ServicePort, serviceOfSlice, slicesOf } from './service-endpoints.ts'

export interface ServiceForwarderOptions {
  readonly client: Pick<KubeClient, 'patch'>
  readonly caches: SharedCaches
  readonly events: EventRecorder
  readonly network: Pick<ClaimedNetwork, 'mode' | 'podRange'>
  readonly clock: Clock
  readonly onError: (error: unknown, key?: ObjectKey) => void
  /** Which local users may connect. Absent: all. */
  readonly peers?: PeerCheck | undefined
  /** How a port is opened; for tests. */
  readonly listen?: typeof PortForwarder.listen
}

export interface ServiceForwarders extends AsyncDisposable {
  /** Service ports that are served now. */
  readonly listening: number
  /** Ends all connections. */
  close(): Promise<void>
}

/** A privileged port stays so; somebody may still grant the right to it. */
const NOT_ALLOWED_RETRY = '5m'

/**
 * Serves the ports of all Services that have an address. Resolves when what is there has been read; the ports open a moment later.
 * UDP and SCTP are not forwarded, node ports are not opened; both are said in an event, or in the package's documentation.
 */
export async function startServiceForwarders(options: ServiceForwarderOptions): Promise<ServiceForwarders> {
  const { client, caches, events, network, clock, onError, peers, listen = PortForwarder.listen } = options
  const known = caches.of(services)
  const slices = caches.of(endpointSlices)
  const accepts = endpointFilter(network)
  /** By Service, then by the port's number. */
  const open = new Map<string, Map<number, PortForwarder>>()
  /** Of ports that are gone, while their last connections go on. */
  const retired = new Set<PortForwarder>()
  const stop = new AbortController()

  async function reconcile(key: ObjectKey): Promise<Outcome> {
    // Its endpoint is the API server, which pods reach at its own address.
    const service = formatKey(key) === 'default/kubernetes' ? undefined : known.store.get(key)
    const ports = service === undefined || !hasAddress(service) ? [] : (service.spec?.ports ?? [])
    const forwarders = open.get(formatKey(key)) ?? new Map<number, PortForwarder>()
    dropUnwanted(forwarders, service, ports)
    if (service === undefined || ports.length === 0) {
      open.delete(formatKey(key))
      return done
    }
    open.set(formatKey(key), forwarders)
    const outcomes: Outcome[] = []
    const mine = slicesOf(slices.store, key)
    for (const port of ports) {
      if ((port.protocol ?? 'TCP') !== 'TCP') {
        warn(service, 'ProtocolNotForwarded', `port ${port.port} is ${port.protocol}; only TCP is forwarded on this platform`)
        continue
      }
      const forwarder = forwarders.get(port.port) ?? (await openPort(service, port))
      if (!(forwarder instanceof PortForwarder)) {
        outcomes.push(forwarder)
        continue
      }
      forwarders.set(port.port, forwarder)
      forwarder.set(backendsOf(port, mine, accepts), affinityMsOf(service))
    }
    if (network.mode === 'single') await writeLocalAddresses(service, forwarders)
    return outcomes.find(({ kind }) => kind === 'retry') ?? outcomes[0] ?? done
  }

  async function openPort(service: Service, port: ServicePort): Promise<PortForwarder | Outcome> {
    const asked = network.mode === 'single' ? localPortOf(service, port.port) : port.port
    const host = network.mode === 'single' ? '127.0.0.1' : (service.spec?.clusterIP ?? '')
    if (!host.startsWith('127.')) {
      warn(service, 'AddressNotLocal', `${host} is not an address of this machine's loopback: nothing listens there`)
      return done
    }
    try {
      return await listen({ host, port: asked ?? 0, clock, peers })
    } catch (error) {
      if (!isThvError(error, 'listen_failed')) throw error
      const code = error.details['reason']
      // The port of the last run is only a wish.
      if (network.mode === 'single' && asked !== undefined) return await listen({ host, port: 0, clock, peers })
      return explain(service, { place: `${host}:${port.port}`, code: String(code), error })
    }
  }

  function explain(service: Service, { place, code, error }: { place: string; code: string; error: unknown }): Outcome {
    if (code === 'EACCES' || code === 'EPERM') {
      warn(
        service,
        'PortNotBindable',
        `${place} needs rights that the platform does not have: ports below 1024 are privileged on this system. Use a higher port`,
      )
      return requeueAfter(NOT_ALLOWED_RETRY)
    }
    if (code === 'EADDRINUSE') {
      warn(service, 'PortInUse', `${place} is taken: another program listens on this port of all addresses. Stop it, or use another port`)
      return retry(`${place} is taken`)
    }
    warn(service, 'PortNotBindable', `${place} cannot be bound: ${errorMessage(error)}`)
    return retry(`${place}: ${code}`)
  }

  async function writeLocalAddresses(service: Service, forwarders: ReadonlyMap<number, PortForwarder>): Promise<void> {
    const patch = localAddressPatch(service, new Map([...forwarders].map(([port, { host, port: local }]) => [port, `${host}:${local}`])))
    const { namespace = '', name } = service.metadata
    if (patch === undefined) return
    try {
      await client.patch(services, { namespace, name }, { kind: 'merge', body: patch })
    } catch (error) {
      if (!isNotFound(error)) throw error // deleted meanwhile: the next event tells
    }
  }

  function warn(service: Service, reason: string, note: string): void {
    events.record(services, service, { type: 'Warning', reason, note, action: 'Forward' })
  }

  /** A Service that was deleted and created again has another address. */
  function dropUnwanted(forwarders: Map<number, PortForwarder>, service: Service | undefined, ports: readonly ServicePort[]): void {
    for (const [number, forwarder] of forwarders) {
      const wanted = ports.some(({ port, protocol = 'TCP' }) => port === number && protocol === 'TCP')
      if (wanted && (network.mode === 'single' || forwarder.host === service?.spec?.clusterIP)) continue
      forwarders.delete(number)
      retired.add(forwarder)
      void forwarder.stop().then(() => retired.delete(forwarder))
    }
  }

  const controller = createController({
    name: 'service-forwarders',
    sources: [watchSelf(known), watchMapped(slices, serviceOfSlice)],
    reconcile,
    concurrency: 4,
    queue: { backoff: { baseMs: 500, maxMs: 30_000 } },
    clock,
    onError,
  })
  const running = controller.run(stop.signal).catch(onError)
  await Promise.all([known.waitForSync(stop.signal), slices.waitForSync(stop.signal)])

  async function close(): Promise<void> {
    stop.abort()
    await running
    const all = [...retired, ...[...open.values()].flatMap((forwarders) => [...forwarders.values()])]
    await Promise.all(all.map((forwarder) => forwarder.close()))
    open.clear()
  }

  return {
    get listening() {
      return [...open.values()].reduce((sum, { size }) => sum + size, 0)
    },
    close,
    [Symbol.asyncDispose]: close,
  }
}

function hasAddress({ metadata, spec }: Service): boolean {
  const { clusterIP = '', type } = spec ?? {}
  return clusterIP !== '' && clusterIP !== 'None' && type !== 'ExternalName' && metadata.deletionTimestamp === undefined
}
