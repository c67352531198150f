import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isThvError } from '@thv/kernel/errors'
import { afterEach, describe, expect, it } from 'vitest'
import { type ClaimOptions, claimNetwork } from './claim-network.ts'

const cleanups: (() => unknown)[] = []

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'thv net '))
  cleanups.push(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

async function claim(folder: string, options: ClaimOptions = {}) {
  const claimed = await claimNetwork(folder, options)
  cleanups.push(() => claimed.release())
  return claimed
}

const picks = (...nets: number[]) => {
  let i = 0
  return () => nets[i++ % nets.length] ?? 2
}

describe.skipIf(process.platform !== 'linux')('claimNetwork', () => {
  it('chooses once and keeps the choice', async () => {
    const folder = newFolder()
    const first = await claim(folder, { pick: picks(201) })
    expect(first).toMatchObject({ mode: 'addresses', serviceRange: '127.201.0.0/17', podRange: '127.201.128.0/17' })
    await first.release()
    const again = await claim(folder, { pick: picks(202) })
    expect(again.serviceRange).toBe(first.serviceRange)
    expect(readFileSync(join(folder, 'network.json'), 'utf8')).toBe('{"network":201}\n')
    expect(statSync(join(folder, 'network.json')).mode & 0o777).toBe(0o600)
  })

  it('takes another network when the picked one is in use', async () => {
    await claim(newFolder(), { pick: picks(203) })
    expect(await claim(newFolder(), { pick: picks(203, 203, 204) })).toMatchObject({ serviceRange: '127.204.0.0/17' })
  })

  it('refuses a folder that a running platform uses, and says what to do', async () => {
    const folder = newFolder()
    await claim(folder, { pick: picks(205) })
    const error = await claim(folder).catch((e: unknown) => e)
    expect(isThvError(error, 'network_unavailable')).toBe(true)
    expect((error as Error).message).toContain('thv down')
    expect((error as Error).message).toContain(folder)
  })

  it('gives up when nothing is free', async () => {
    await claim(newFolder(), { pick: picks(206) })
    await expect(claim(newFolder(), { pick: picks(206) })).rejects.toMatchObject({ code: 'network_unavailable' })
  })

  it('is not confused by a server on all addresses at its port, such as a kubelet', async () => {
    const kubelet = createServer()
    await new Promise<void>((resolve, reject) => kubelet.once('error', reject).listen(21_250, '0.0.0.0', resolve))
    cleanups.push(() => kubelet.close())
    const folder = newFolder()
    const markPorts = [21_250, 22_250]
    await claim(folder, { pick: picks(207), markPorts })
    await expect(claim(folder, { markPorts })).rejects.toMatchObject({ code: 'network_unavailable' })
  })

  it.each(['', 'null', '{}', '{"network":1}', '{"network":251}', '{"network":"7"}', '{"network":2.5}', '{"network":7'])(
    'names the damaged file: %s',
    async (text) => {
      const folder = newFolder()
      writeFileSync(join(folder, 'network.json'), text)
      const error = await claim(folder).catch((e: unknown) => e)
      expect(isThvError(error, 'data_folder_failed')).toBe(true)
      expect((error as Error).message).toContain(join(folder, 'network.json'))
    },
  )
})

describe('claimNetwork where only 127.0.0.1 can be bound', () => {
  it('keeps its ranges without marking them', async () => {
    const folder = newFolder()
    const one = await claim(folder, { mode: 'single', pick: picks(208) })
    const two = await claim(folder, { mode: 'single' })
    expect([one.mode, one.serviceRange, two.serviceRange]).toEqual(['single', '127.208.0.0/17', '127.208.0.0/17'])
  })
})
