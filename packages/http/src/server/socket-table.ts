import { close, open, read } from 'node:fs'
import { endianness } from 'node:os'
import { join } from 'node:path'
import { type IpBytes, parseIp } from '../ip-address.ts'

/** One TCP connection of this machine, as one of its two sockets sees it. */
export interface SocketEnds {
  readonly localAddress: string
  readonly localPort: number
  readonly remoteAddress: string
  readonly remotePort: number
}

/** The kernel's list of TCP sockets: who owns which. */
export interface SocketTable {
  /**
   * User id of the socket's owner; undefined when there is no such socket, or no process has it open any more. Rejects when the list
   * cannot be read. Every call made before a read begins is answered by that read.
   */
  ownerOf(ends: SocketEnds): Promise<number | undefined>
}

export interface SocketTableOptions {
  /** Holds `tcp` and `tcp6`, as described in proc(5). */
  readonly folder?: string
}

interface Question {
  /** In `tcp`; undefined for an IPv6 connection, which only `tcp6` lists. */
  readonly key4: string | undefined
  readonly key6: string
  readonly answer: (uid: number | undefined) => void
  readonly fail: (error: unknown) => void
}

/** Larger than the page that the kernel gives at a time, small enough for one turn of the event loop. */
const CHUNK_BYTES = 16_384
const LINE_END = 0x0a
const COLON = 0x3a
/** Of a line after its number: two addresses with ports. */
const KEY4_LENGTH = 27
const KEY6_LENGTH = 75
const MAPPED: IpBytes = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff]
const SWAPPED = endianness() === 'LE'

/**
 * Reads in the thread pool and looks through one chunk at a time, so that the event loop is never held up for the whole list, which takes
 * the kernel milliseconds to write. While one read runs, new questions wait for the next one: a socket made after a read began may be
 * missing in it.
 */
export function createSocketTable({ folder = '/proc/net' }: SocketTableOptions = {}): SocketTable {
  let waiting: Question[] = []
  let reading = false

  async function answerAll(): Promise<void> {
    reading = true
    while (waiting.length > 0) {
      const questions = waiting
      waiting = []
      try {
        const left = await scan(join(folder, 'tcp'), questions, { keyOf: ({ key4 }) => key4, length: KEY4_LENGTH })
        // A program may speak IPv4 through an IPv6 socket; a kernel without IPv6 has no second list.
        const unknown = await scan(join(folder, 'tcp6'), left, { keyOf: ({ key6 }) => key6, length: KEY6_LENGTH, optional: true })
        for (const { answer } of unknown) answer(undefined)
      } catch (error) {
        for (const { fail } of questions) fail(error)
      }
    }
    reading = false
  }

  return {
    ownerOf(ends) {
      return new Promise((answer, fail) => {
        waiting.push({ ...keysOf(ends), answer, fail })
        if (!reading) void answerAll()
      })
    },
  }
}

/** Shared by all servers of a process, so that one read serves them all. */
export const systemSocketTable: SocketTable = createSocketTable()

interface KeyForm {
  readonly keyOf: (question: Question) => string | undefined
  readonly length: number
  /** A missing file is an empty list. */
  readonly optional?: boolean
}

/** Answers the questions whose sockets a list names; resolves with the others. */
function scan(path: string, questions: readonly Question[], { keyOf, length, optional = false }: KeyForm): Promise<readonly Question[]> {
  const left = Map.groupBy(questions, keyOf)
  const others = left.get(undefined) ?? []
  left.delete(undefined)
  if (left.size === 0) return Promise.resolve(others)
  const { promise, resolve, reject } = Promise.withResolvers<readonly Question[]>()
  const chunk = Buffer.allocUnsafe(CHUNK_BYTES)
  /** Bytes of a line whose end has not been read. */
  let kept = 0

  open(path, 'r', (failed, file) => {
    if (failed === null) next(file)
    else if (optional && failed.code === 'ENOENT') finish(null)
    else reject(failed)
  })

  function next(file: number): void {
    read(file, chunk, kept, chunk.length - kept, null, (failed, bytes) => {
      const end = kept + bytes
      if (!failed && bytes > 0) kept = takeLines(end)
      if (failed || bytes === 0 || left.size === 0 || kept === chunk.length) close(file, () => finish(failed))
      else next(file)
    })
  }

  function finish(failed: Error | null): void {
    if (failed) reject(failed)
    else if (kept === chunk.length) reject(new RangeError(`${path} has a line of more than ${CHUNK_BYTES} bytes`))
    else resolve([...others, ...[...left.values()].flat()])
  }

  /** Moves what is left of the last line to the front, and returns its length. */
  function takeLines(end: number): number {
    let start = 0
    for (let stop = chunk.indexOf(LINE_END); stop >= 0 && stop < end; stop = chunk.indexOf(LINE_END, start)) {
      const key = chunk.indexOf(COLON, start) + 2
      const ends = chunk.toString('latin1', key, key + length)
      if (left.has(ends)) take(ends, chunk.toString('latin1', key + length, stop))
      start = stop + 1
    }
    chunk.copy(chunk, 0, start, end)
    return end - start
  }

  /** After the addresses: state, queues, timer, retransmits, uid, timeout, inode. */
  function take(ends: string, rest: string): void {
    const [, , , , uid = '', , inode = '0'] = rest.trim().split(/\s+/)
    // Without a process behind it the kernel names user 0, who is not the one that opened the connection.
    if (inode === '0' || !/^\d+$/.test(uid)) return
    for (const { answer } of left.get(ends) ?? []) answer(Number(uid))
    left.delete(ends)
  }

  return promise
}

function keysOf({ localAddress, localPort, remoteAddress, remotePort }: SocketEnds): Pick<Question, 'key4' | 'key6'> {
  const [local, remote] = [addressBytes(localAddress), addressBytes(remoteAddress)]
  const key = (form: (bytes: IpBytes) => IpBytes) => `${hex(form(local))}:${portHex(localPort)} ${hex(form(remote))}:${portHex(remotePort)}`
  const v4 = local.length === 4 && remote.length === 4
  return {
    key4: v4 ? key((bytes) => bytes) : undefined,
    key6: key((bytes) => (bytes.length === 4 ? [...MAPPED, ...bytes] : bytes)),
  }
}

/** A mapped address (`::ffff:127.0.0.1`) is what a server that listens on IPv6 calls an IPv4 peer. */
function addressBytes(address: string): IpBytes {
  const bytes = parseIp(address)
  if (bytes === undefined) throw new TypeError(`${address} is not an IP address`)
  return bytes.length === 16 && MAPPED.every((byte, at) => bytes[at] === byte) ? bytes.slice(MAPPED.length) : bytes
}

/** The kernel prints words of four bytes in the order of the machine. */
function hex(bytes: IpBytes): string {
  const ordered = SWAPPED ? bytes.map((_, at) => bytes[(at & ~3) + 3 - (at & 3)] ?? 0) : bytes
  return Buffer.from(ordered).toString('hex').toUpperCase()
}

function portHex(port: number): string {
  return port.toString(16).toUpperCase().padStart(4, '0')
}
