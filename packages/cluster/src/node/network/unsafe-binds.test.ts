import { existsSync } from 'node:fs'
import { afterEach, describe, expect, it } from 'vitest'
import { parseProcNetTcp } from './listening-sockets.ts'
import { startChild } from './testing/child.ts'
import { listeningPorts, unsafeBinds, unsafeBindsByLsof } from './unsafe-binds.ts'

const cleanups: (() => unknown)[] = []

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

/** Listens on each place and then prints a line. */
function listening(places: readonly [host: string, port: number][], env: Record<string, string> = {}) {
  const script = `Promise.all(${JSON.stringify(places)}.map(([host, port]) => new Promise((done) =>
    require('node:net').createServer().listen({ host, port }, done)))).then(() => console.log('listening'))`
  const child = startChild(process.execPath, ['-e', script], env)
  cleanups.push(() => child.stop())
  return child
}

/** Starts a grandchild that listens on all addresses, in a session of its own, and prints its process id. */
function daemon(port: number, { orphan, env }: { orphan: boolean; env: Record<string, string> }) {
  const inner = `require('node:net').createServer().listen({ host: '0.0.0.0', port: ${port} }, () => console.log(process.pid))`
  const script = `require('node:child_process').spawn(process.execPath, ['-e', ${JSON.stringify(inner)}], { stdio: 'inherit', detached: true }).unref()
    ${orphan ? 'setTimeout(() => process.exit(), 10)' : 'setInterval(() => {}, 1000)'}`
  const child = startChild(process.execPath, ['-e', script], env)
  cleanups.push(() => child.stop())
  return child
}

const POD = '127.215.128.1'

describe.skipIf(process.platform !== 'linux')('unsafeBinds', () => {
  it('names what is open to the network, and only that', async () => {
    const child = listening([
      ['0.0.0.0', 7_401],
      ['::', 7_402],
      [POD, 7_403],
      ['127.0.0.1', 7_404],
      ['::1', 7_405],
      ['::ffff:127.0.0.1', 7_406],
    ])
    const other = listening([['0.0.0.0', 7_407]])
    await Promise.all([child.line(), other.line()])
    expect(await unsafeBinds(child.pid, POD)).toEqual(['0.0.0.0:7401', '[::]:7402'])
    expect(await unsafeBinds(child.pid, undefined)).toEqual(['0.0.0.0:7401', '[::]:7402'])
    expect(await unsafeBinds(2 ** 22 + 7, POD)).toEqual([])
    expect(await listeningPorts(child.pid, POD)).toEqual([7_401, 7_402, 7_403, 7_404, 7_405, 7_406])
  })

  it('finds a descendant that has left the group', async () => {
    const child = daemon(7_411, { orphan: false, env: {} })
    const pid = Number(await child.line())
    cleanups.push(() => process.kill(pid, 'SIGKILL'))
    expect(await unsafeBinds(child.pid, POD)).toEqual(['0.0.0.0:7411'])
  })

  it('finds one that has lost its parent too, by its environment', async () => {
    const child = daemon(7_412, { orphan: true, env: { THV_BIND_ADDRESS: POD } })
    const pid = Number(await child.line())
    cleanups.push(() => process.kill(pid, 'SIGKILL'))
    expect(await unsafeBinds(child.pid, POD)).toEqual(['0.0.0.0:7412'])
    expect(await unsafeBinds(child.pid, '127.215.128.2')).toEqual([])
  })

  it.skipIf(!existsSync('/usr/bin/lsof') || !existsSync('/bin/ps'))('finds the same with lsof', async () => {
    const child = listening([
      ['0.0.0.0', 7_421],
      [POD, 7_422],
      ['::1', 7_423],
    ])
    await child.line()
    expect(await unsafeBindsByLsof(child.pid)).toEqual(['*:7421'])
  })
})

describe('parseProcNetTcp', () => {
  const line = (local: string, state = '0A') =>
    `  sl  local_address\n   0: ${local} 00000000:0000 ${state} 00000000:00000000 00:00000000 00000000  1000        0 4242 1 0 100 0 0 10 0\n`

  it('reads listening sockets', () => {
    expect(parseProcNetTcp(line('0100007F:1F90'))).toEqual([{ place: '127.0.0.1:8080', loopback: true, uid: 1000, inode: '4242' }])
    expect(parseProcNetTcp(line('00000000:1F90'))).toMatchObject([{ place: '0.0.0.0:8080', loopback: false }])
    expect(parseProcNetTcp(line('0A01A8C0:0050'))).toMatchObject([{ place: '192.168.1.10:80', loopback: false }])
    expect(parseProcNetTcp(line(`${'0'.repeat(32)}:1F90`))).toMatchObject([{ place: '[::]:8080', loopback: false }])
    expect(parseProcNetTcp(line('00000000000000000000000001000000:1F90'))).toMatchObject([{ place: '[::1]:8080', loopback: true }])
    expect(parseProcNetTcp(line('0000000000000000FFFF00000100007F:1F90'))).toMatchObject([{ place: '127.0.0.1:8080', loopback: true }])
  })

  it('leaves connections and what it does not understand', () => {
    expect(parseProcNetTcp(line('0100007F:1F90', '01'))).toEqual([])
    expect(parseProcNetTcp('')).toEqual([])
    expect(parseProcNetTcp('header\nnonsense\n\n1: XYZ 2 0A')).toEqual([])
  })
})
