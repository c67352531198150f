import { randomInt } from 'node:crypto'
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:net'
import { join } from 'node:path'
import { ThvError } from '@thv/kernel/errors'

/**
 * `addresses`: every pod and Service has its own address in one /16 of 127.0.0.0/8. `single`: the system knows only 127.0.0.1, so
 * pods share it and each Service port is forwarded from a free port.
 */
export type NetworkMode = 'addresses' | 'single'

export interface ClaimedNetwork {
  readonly mode: NetworkMode
  /** Cluster IPs come from here in both modes; in mode `single` nothing listens on them. */
  readonly serviceRange: string
  readonly podRange: string
  release(): Promise<void>
}

export interface ClaimOptions {
  /** Instead of finding out. */
  readonly mode?: NetworkMode
  /** Between 2 and 250, for the first start. */
  readonly pick?: () => number
  readonly markPorts?: readonly number[]
}

const FILE = 'network.json'
const FIRST = 2
const LAST = 250
const PICKS = 16
/** A kubelet listens on every address at the first; then the next one is the mark, for everybody. */
const MARK_PORTS = [10_250, 20_250, 30_250]

/**
 * The addresses of one data folder: chosen at the first start, the same ever after, since the Services in the store keep theirs.
 * While the platform runs it marks them by listening on the last one, so that two platforms never share a network. Rejects with
 * `network_unavailable` when somebody else has them, with `data_folder_failed` when the file cannot be used.
 */
export async function claimNetwork(folder: string, options: ClaimOptions = {}): Promise<ClaimedNetwork> {
  const { pick = () => randomInt(FIRST, LAST + 1), markPorts = MARK_PORTS } = options
  const kept = await readChoice(folder)
  if (options.mode === 'single' || (options.mode === undefined && !(await bindsAnyLoopback()))) {
    const net = kept ?? pick()
    if (kept === undefined) await writeChoice(folder, net)
    return claimed(net, 'single', undefined)
  }
  if (kept !== undefined) {
    const mark = await markNetwork(kept, markPorts)
    if (mark === undefined)
      throw new ThvError(
        'network_unavailable',
        `the addresses 127.${kept}.0.0/16 are in use: a platform runs on ${folder}, or one on another folder has got the same. ` +
          `Stop it (thv down); in the second case removing ${join(folder, FILE)} helps too, and Services get new addresses`,
      )
    return claimed(kept, 'addresses', mark)
  }
  for (let attempt = 0; attempt < PICKS; attempt++) {
    const net = pick()
    const mark = await markNetwork(net, markPorts)
    if (mark === undefined) continue
    try {
      await writeChoice(folder, net)
    } catch (error) {
      await closed(mark)
      throw error
    }
    return claimed(net, 'addresses', mark)
  }
  throw new ThvError('network_unavailable', `none of ${PICKS} networks between 127.${FIRST}.0.0 and 127.${LAST}.0.0 is free`)
}

function claimed(net: number, mode: NetworkMode, mark: Server | undefined): ClaimedNetwork {
  return {
    mode,
    serviceRange: `127.${net}.0.0/17`,
    podRange: `127.${net}.128.0/17`,
    release: () => (mark === undefined ? Promise.resolve() : closed(mark)),
  }
}

/** Undefined: somebody has marked it already. */
async function markNetwork(net: number, ports: readonly number[]): Promise<Server | undefined> {
  for (const port of ports) {
    const mark = await tryListen(`127.${net}.255.254`, port)
    if (typeof mark !== 'string') return mark
    if (mark !== 'EADDRINUSE') throw new ThvError('network_unavailable', `127.${net}.255.254:${port} cannot be bound: ${mark}`)
    // 127.1 is never claimed: if the port is taken there too, it is by a server that listens on all addresses.
    const elsewhere = await tryListen('127.1.255.254', port)
    if (elsewhere !== 'EADDRINUSE') {
      if (typeof elsewhere !== 'string') await closed(elsewhere)
      return undefined
    }
  }
  return undefined
}

/** Linux and Windows let a process bind all of 127.0.0.0/8, others only what was configured. */
async function bindsAnyLoopback(): Promise<boolean> {
  const probe = await tryListen('127.1.255.253', 0)
  if (typeof probe === 'string') return false
  await closed(probe)
  return true
}

/** The system's code where it fails. */
function tryListen(host: string, port: number): Promise<Server | string> {
  return new Promise((resolve) => {
    const server = createServer((socket) => socket.destroy())
    server.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message))
    server.listen({ host, port, exclusive: true }, () => resolve(server.unref()))
  })
}

function closed(server: Server): Promise<void> {
  return new Promise((resolve) => server.close(() => resolve()))
}

async function readChoice(folder: string): Promise<number | undefined> {
  const path = join(folder, FILE)
  let text: string
  try {
    text = await readFile(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw new ThvError('data_folder_failed', `${path} cannot be read`, { cause: error })
  }
  const net = networkIn(text)
  if (net === undefined)
    throw new ThvError('data_folder_failed', `${path} is damaged: it should be {"network": N} with N between ${FIRST} and ${LAST}`)
  return net
}

function networkIn(text: string): number | undefined {
  try {
    const value: unknown = JSON.parse(text)
    const net = typeof value === 'object' && value !== null && 'network' in value ? value.network : undefined
    return typeof net === 'number' && Number.isInteger(net) && net >= FIRST && net <= LAST ? net : undefined
  } catch {
    return undefined // not JSON: damaged like any other wrong content
  }
}

async function writeChoice(folder: string, net: number): Promise<void> {
  const path = join(folder, FILE)
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 })
    await writeFile(`${path}.new`, `${JSON.stringify({ network: net })}\n`, { mode: 0o600 })
    await rename(`${path}.new`, path)
  } catch (error) {
    throw new ThvError('data_folder_failed', `${path} cannot be written`, { cause: error })
  }
}
