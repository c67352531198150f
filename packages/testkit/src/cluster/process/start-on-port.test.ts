import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { request } from '../http-request.ts'
import { type Daemon, startDaemon } from './daemon.ts'
import { type ProcessGuard, startGuard } from './process-guard.ts'
import { freePort, startOnPort } from './start-on-port.ts'

let folder: string
let guard: ProcessGuard
let logs = 0
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'port-test-'))
  guard = startGuard()
})
afterAll(async () => {
  await guard.close()
  rmSync(folder, { recursive: true })
})

describe('startOnPort', () => {
  test('waits until the program is ready', async () => {
    const { daemon, port } = await startOnPort({ start: serve(), ready: answersWith('mine'), limitMs: 15_000 })
    expect(daemon.running).toBe(true)
    expect((await request(`http://127.0.0.1:${port}`)).text).toBe('mine')
    await daemon.kill()
    expect(daemon.running).toBe(false)
  })

  test('tries again when the port was taken meanwhile, and does not mistake the stranger for ours', async () => {
    const stranger = await startOnPort({ start: serve('stranger'), ready: answersWith('stranger'), limitMs: 15_000 })
    let attempt = 0
    const start = (port: number) => serve()(attempt++ === 0 ? stranger.port : port)
    const ready = async (port: number) => answersWith('mine')(attempt === 1 ? stranger.port : port)
    const ours = await startOnPort({ start, ready, limitMs: 15_000 })
    expect(attempt).toBe(2)
    expect(ours.port).not.toBe(stranger.port)
    await Promise.all([ours.daemon.kill(), stranger.daemon.kill()])
  })

  test('another end is an error with the last lines', async () => {
    const start = () => program('console.error("line of woe"); process.exit(3)')
    await expect(startOnPort({ start, ready: never, limitMs: 15_000 })).rejects.toThrow(/program ended with code 3[\s\S]*line of woe/)
  })

  test('a program that never gets ready is ended', async () => {
    let daemon: Daemon | undefined
    const start = async () => {
      daemon = await program('process.stdin.resume(); setInterval(() => {}, 1000)')
      return daemon
    }
    await expect(startOnPort({ start, ready: never, limitMs: 150 })).rejects.toThrow(
      /was not ready within 150 ms \(it answers, but is not ready\)/,
    )
    expect(daemon?.running).toBe(false)
  })
})

describe('daemon', () => {
  test('one that ignores SIGTERM is killed after the limit', async () => {
    const daemon = await program('process.on("SIGTERM", () => {}); setInterval(() => {}, 1000); console.log("deaf")')
    await vi.waitFor(() => expect(daemon.logTail()).toBe('deaf'), 10_000)
    await daemon.stop(50)
    expect(daemon.running).toBe(false)
    expect(await daemon.ended).toBe('program was ended by SIGKILL')
    await daemon.stop(50)
  })

  test('a missing program is an error', async () => {
    const options = { command: join(folder, 'nothing'), args: [], logFile: join(folder, 'none.log'), guard }
    await expect(startDaemon('ghost', options)).rejects.toThrow('ghost could not be started')
  })
})

test('a free port is below those of outgoing connections and node ports', async () => {
  for (let round = 0; round < 20; round++) expect(await freePort()).toBeLessThan(30_000)
})

function program(script: string): Promise<Daemon> {
  return startDaemon('program', { command: process.execPath, args: ['-e', script], logFile: join(folder, `${logs++}.log`), guard })
}

function serve(text = 'mine'): (port: number) => Promise<Daemon> {
  const failure = 'listen: address already in use'
  return (port) =>
    program(
      `require('http').createServer((_, r) => r.end('${text}')).on('error', () => { console.error('${failure}'); process.exit(1) }).listen(${port}, '127.0.0.1')`,
    )
}

function answersWith(text: string): (port: number) => Promise<boolean> {
  return async (port) => (await request(`http://127.0.0.1:${port}`, { limitMs: 1000 })).text === text
}

async function never(): Promise<boolean> {
  return false
}
