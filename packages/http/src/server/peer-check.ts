import type { Socket } from 'node:net'
import { programEnv } from '@thv/kernel/program-scope'
import { classifyIp } from '../ip-address.ts'
import { type SocketEnds, type SocketTable, systemSocketTable } from './socket-table.ts'

/** Decides which local users may connect. */
export interface PeerCheck {
  /** Called once per connection. `true` at once where nothing has to be looked up. Never rejects: an unknown peer is refused. */
  admits(socket: Socket): true | Promise<boolean>
}

export interface PeerCheckOptions {
  /** The user who is served; user 0 is served too. */
  readonly uid: number
  readonly table?: SocketTable
  /** Told once per user, and of a list that cannot be read. */
  readonly onRefused?: (reason: string) => void
}

/** The variable through which the embedded platform tells its processes whom they serve. */
export const PEER_USER_VARIABLE = 'THV_PEER_USER'
/** Text for a client that is refused. */
export const PEER_REFUSED =
  'This server answers only to the user who started it. That user can run "thv up --shared" to serve every user of this machine.'

const ROOT = 0
const MAX_TOLD = 100

/**
 * Admits connections from or to a loopback address only if the socket at their other end belongs to one user, or root. (To one, too: a
 * client may bind another address of this machine before it connects.) It does not decide about connections from other machines.
 */
export function createPeerCheck({ uid, table = systemSocketTable, onRefused = () => {} }: PeerCheckOptions): PeerCheck {
  const told = new Set<string>()

  async function admits(socket: Socket, ends: SocketEnds): Promise<boolean> {
    try {
      // Of sockets that come and go while the kernel writes its list, one may be passed over.
      const owner = (await table.ownerOf(ends)) ?? (socket.destroyed ? undefined : await table.ownerOf(ends))
      if (owner === uid || owner === ROOT) return true
      if (!socket.destroyed)
        tell(owner === undefined ? 'a connection whose owner is unknown was refused' : `a connection of user ${owner} was refused`)
    } catch (error) {
      tell(`a connection was refused because its owner could not be looked up: ${error instanceof Error ? error.message : error}`)
    }
    return false
  }

  function tell(reason: string): void {
    if (told.has(reason) || told.size >= MAX_TOLD) return
    told.add(reason)
    onRefused(reason)
  }

  return {
    admits(socket) {
      const ends = peerEnds(socket)
      if (ends === undefined) return Promise.resolve(false) // gone before it was looked at
      return isLoopback(ends.localAddress) || isLoopback(ends.remoteAddress) ? admits(socket, ends) : true
    },
  }
}

/** From THV_PEER_USER; undefined without it. Throws a TypeError when it is not a user id. */
export function peerCheckFromEnv(
  env: Readonly<Record<string, string | undefined>> = programEnv(),
  options: Omit<PeerCheckOptions, 'uid'> = {},
): PeerCheck | undefined {
  const text = env[PEER_USER_VARIABLE]
  if (!text) return undefined
  if (!/^\d{1,10}$/.test(text)) throw new TypeError(`${PEER_USER_VARIABLE} is not the number of a user: ${JSON.stringify(text)}`)
  return createPeerCheck({ ...options, uid: Number(text) })
}

/** The same connection as its other end sees it. Undefined once it is closed. */
function peerEnds({ localAddress, localPort, remoteAddress, remotePort }: Socket): SocketEnds | undefined {
  if (localAddress === undefined || localPort === undefined || remoteAddress === undefined || remotePort === undefined) return undefined
  return { localAddress: remoteAddress, localPort: remotePort, remoteAddress: localAddress, remotePort: localPort }
}

function isLoopback(address: string): boolean {
  return classifyIp(address) === 'loopback'
}
