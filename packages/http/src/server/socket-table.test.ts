import fs, { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { peerLookupProblem } from './peer-lookup.ts'
import { createSocketTable, type SocketEnds } from './socket-table.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'thv-sockets-'))
})
afterEach(() => {
  vi.restoreAllMocks()
  syncBuiltinESMExports()
  rmSync(folder, { recursive: true })
})

const HEAD = '  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n'

/** As proc(5) prints it on a little-endian machine. */
function line(number: number, ends: string, { uid = 1_000, inode = 4_711 } = {}): string {
  return `${String(number).padStart(4)}: ${ends} 01 00000000:00000000 00:00000000 00000000 ${String(uid).padStart(5)}        0 ${inode} 1 0\n`.padEnd(
    150,
  )
}

function endsOf(localPort: number): SocketEnds {
  return { localAddress: '127.0.0.1', localPort, remoteAddress: '127.2.0.1', remotePort: 8_080 }
}

function hexEnds(localPort: number): string {
  return `0100007F:${localPort.toString(16).toUpperCase().padStart(4, '0')} 0100027F:1F90`
}

describe('createSocketTable', () => {
  it('finds every owner in a list of many chunks, whatever line a chunk ends in', async () => {
    const ports = Array.from({ length: 20_000 }, (_, index) => 10_000 + index)
    writeFileSync(join(folder, 'tcp'), HEAD + ports.map((port, index) => line(index, hexEnds(port), { uid: port + 1 })).join(''))
    const table = createSocketTable({ folder })
    const asked = ports.filter((port) => port % 97 === 0)
    expect(await Promise.all(asked.map((port) => table.ownerOf(endsOf(port))))).toEqual(asked.map((port) => port + 1))
  })

  it.each([
    ['IPv4', 'tcp', '0100007F:0050 0100007F:1F90', '127.0.0.1', '127.0.0.1'],
    [
      'IPv4 through an IPv6 socket',
      'tcp6',
      `${'0'.repeat(16)}FFFF00000100007F:0050 ${'0'.repeat(16)}FFFF00000100007F:1F90`,
      '127.0.0.1',
      '127.0.0.1',
    ],
    ['IPv4 as a server on IPv6 sees it', 'tcp', '0100007F:0050 0100007F:1F90', '::ffff:127.0.0.1', '::ffff:127.0.0.1'],
    ['IPv6', 'tcp6', `${'0'.repeat(24)}01000000:0050 ${'0'.repeat(24)}01000000:1F90`, '::1', '::1'],
  ])('finds the owner of a connection over %s', async (_, file, ends, localAddress, remoteAddress) => {
    writeFileSync(join(folder, 'tcp'), HEAD)
    writeFileSync(join(folder, 'tcp6'), HEAD)
    writeFileSync(join(folder, file), HEAD + line(0, ends))
    const asked = { localAddress, localPort: 80, remoteAddress, remotePort: 8_080 }
    expect(await createSocketTable({ folder }).ownerOf(asked)).toBe(1_000)
  })

  it('knows no owner of a socket that is missing, or that no process has open', async () => {
    writeFileSync(join(folder, 'tcp'), HEAD + line(0, hexEnds(81), { uid: 0, inode: 0 }))
    const table = createSocketTable({ folder })
    expect(await Promise.all([table.ownerOf(endsOf(80)), table.ownerOf(endsOf(81))])).toEqual([undefined, undefined])
  })

  it('answers all questions asked before a read with that read, later ones with the next', async () => {
    const opened: string[] = []
    const real = fs.open
    vi.spyOn(fs, 'open').mockImplementation(((path: string, ...rest: [never]) => {
      opened.push(path)
      return real(path, ...rest)
    }) as typeof fs.open)
    syncBuiltinESMExports()
    const ports = Array.from({ length: 100 }, (_, index) => 1_000 + index)
    writeFileSync(join(folder, 'tcp'), HEAD + ports.map((port, index) => line(index, hexEnds(port))).join(''))
    const table = createSocketTable({ folder })
    const [first = 0, ...rest] = ports
    const before = table.ownerOf(endsOf(first)) // its read has begun
    const after = rest.map((port) => table.ownerOf(endsOf(port)))
    const twice = table.ownerOf(endsOf(ports[50] ?? 0))
    expect(new Set(await Promise.all([before, twice, ...after]))).toEqual(new Set([1_000]))
    expect(opened).toEqual([join(folder, 'tcp'), join(folder, 'tcp')])
  })

  it('rejects when the list cannot be read, and reads again for the next question', async () => {
    const table = createSocketTable({ folder })
    await expect(table.ownerOf(endsOf(80))).rejects.toThrow('ENOENT')
    writeFileSync(join(folder, 'tcp'), 'x'.repeat(20_000))
    await expect(table.ownerOf(endsOf(80))).rejects.toThrow('has a line of more than')
    writeFileSync(join(folder, 'tcp'), HEAD + line(0, hexEnds(80)))
    expect(await table.ownerOf(endsOf(80))).toBe(1_000)
  })
})

describe.skipIf(process.platform !== 'linux')('the list of this machine', () => {
  it('names the owners of 1,000 sockets without stopping the event loop for a whole read', async () => {
    const server = createServer((socket) => socket.on('error', () => {}))
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as AddressInfo
    const clients: Socket[] = []
    for (let count = 0; count < 1_000; count++) {
      const client = connect({ host: '127.0.0.1', port })
      await new Promise((resolve, reject) => client.once('connect', resolve).once('error', reject))
      clients.push(client)
    }
    let turns = 0
    const turning = setInterval(() => turns++, 0)
    const immediate = () => {
      turns++
      if (clients.length > 0) setImmediate(immediate)
    }
    setImmediate(immediate)
    const table = createSocketTable()
    const uids = await Promise.all(
      clients.map(({ localAddress = '', localPort = 0, remoteAddress = '', remotePort = 0 }) =>
        table.ownerOf({ localAddress, localPort, remoteAddress, remotePort }),
      ),
    )
    expect(uids.filter((uid) => uid !== process.getuid?.())).toEqual([])
    // 2,000 lines are at least 18 chunks: other work went on between them.
    expect(turns).toBeGreaterThan(18)
    clearInterval(turning)
    for (const client of clients.splice(0)) client.destroy()
    await new Promise((resolve) => server.close(resolve))
  })
})

describe('peerLookupProblem', () => {
  it.skipIf(process.platform !== 'linux')('is undefined where the owner of an own connection is found', async () => {
    expect(await peerLookupProblem()).toBeUndefined()
  })

  it('says why owners cannot be found', async () => {
    expect(await peerLookupProblem({ platform: 'darwin' })).toBe('the owner of a connection cannot be looked up on darwin')
    const options = { platform: 'linux', table: createSocketTable({ folder }) } as const
    expect(await peerLookupProblem(options)).toMatch(/^the list of TCP sockets cannot be read: ENOENT/)
    writeFileSync(join(folder, 'tcp'), HEAD)
    expect(await peerLookupProblem(options)).toBe('the list of TCP sockets does not name the owner of a connection')
  })
})
