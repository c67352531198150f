import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Daemon, startDaemon } from '../cluster/process/daemon.ts'
import { guardedFolderPrefix, type ProcessGuard, startGuard } from '../cluster/process/process-guard.ts'
import { startOnPort } from '../cluster/process/start-on-port.ts'
import { ensureTraefik } from './traefik-binary.ts'

/** The name that a GatewayClass gives this implementation. */
export const traefikController = 'traefik.io/gateway-controller'

export interface TraefikOptions {
  readonly kubeconfigPath: string
  /** Gateways and routes of these namespaces only. */
  readonly namespaces: readonly string[]
  /** Address in the status of its Gateways: an address or a host name of this machine. */
  readonly publish: PublishedAddress
}

export type PublishedAddress = { readonly ip: string } | { readonly hostname: string }

/** A real gateway: a process outside of the cluster that writes the status of Gateways and routes, and carries their traffic. */
export interface Traefik extends AsyncDisposable {
  /** Of its one entry point; a listener with this port is served. Kept by `republish`. */
  readonly port: number
  /** Starts it again with another address to publish. */
  republish(publish: PublishedAddress): Promise<void>
  logTail(): string
}

const READY_WITHIN_MS = 60_000
const GRACE_MS = 10_000

export async function startTraefik(options: TraefikOptions): Promise<Traefik> {
  const program = await ensureTraefik({ log: (line) => console.error(line) })
  const guard = startGuard()
  try {
    const folder = await mkdtemp(join(tmpdir(), `${guardedFolderPrefix}traefik-`))
    guard.removeAtEnd(folder)
    const start = (publish: PublishedAddress, port?: number) =>
      startOnPort({
        start: (chosen) =>
          startDaemon('traefik', {
            command: 'env',
            args: [`KUBECONFIG=${options.kubeconfigPath}`, program, ...argumentsOf(options, publish, chosen)],
            logFile: join(folder, 'traefik.log'),
            guard,
          }),
        ready: async (chosen) => (await fetch(`http://127.0.0.1:${chosen}/ping`, { signal: AbortSignal.timeout(2_000) })).ok,
        limitMs: READY_WITHIN_MS,
        port,
      })
    let running = await start(options.publish)
    const { port } = running
    return {
      port,
      logTail: () => running.daemon.logTail(),
      async republish(publish) {
        await running.daemon.stop(GRACE_MS)
        running = await start(publish, port)
      },
      [Symbol.asyncDispose]: () => end(running.daemon, guard),
    }
  } catch (error) {
    await guard.close()
    throw error
  }
}

async function end(daemon: Daemon, guard: ProcessGuard): Promise<void> {
  await daemon.stop(GRACE_MS)
  await guard.close()
}

function argumentsOf({ namespaces }: TraefikOptions, publish: PublishedAddress, port: number): string[] {
  const provider = '--providers.kubernetesgateway'
  const address = 'ip' in publish ? `ip=${publish.ip}` : `hostname=${publish.hostname}`
  return [
    `--entrypoints.web.address=:${port}`,
    '--ping=true',
    '--ping.entrypoint=web',
    provider,
    `${provider}.namespaces=${namespaces.join(',')}`,
    `${provider}.statusaddress.${address}`,
    // The addresses of Services, which this machine reaches; those of pods it may not reach.
    `${provider}.nativelbbydefault=true`,
    '--global.checknewversion=false',
    '--global.sendanonymoususage=false',
    '--log.level=INFO',
  ]
}
