import { mkdtempSync, rmSync, unlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { TestClock } from '@thv/kernel/clock'
import type { FileWatch } from '@thv/kernel/watch-file'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { readConfig } from '../config/read-config.ts'
import type { RegistryConfig } from '../config/registry-config.ts'
import { type LogLine, recordingLog } from '../testing/run-registry.ts'
import { until } from '../testing/until.ts'
import { startReloader } from './config-reloader.ts'

let folder: string
let file: string
let reloader: FileWatch | undefined

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'registry-reload-'))
  file = join(folder, 'config.yaml')
})

afterEach(async () => {
  await reloader?.[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true })
})

const text = (name: string, more = '') =>
  `sources: [{name: own, managed: {}}]\nregistries: [{name: ${name}, sources: [own]}]\nauth: {mode: anonymous}\n${more}`

function configOf(yaml: string): RegistryConfig {
  const result = readConfig(yaml, { env: {}, dataDir: folder, folder })
  if (!result.ok) throw new Error('not good')
  return result.config
}

function start(options: { apply?: (config: RegistryConfig) => Promise<void>; startText?: string; debounceMs?: number } = {}) {
  const startText = options.startText ?? text('one')
  const clock = new TestClock()
  const { log, lines } = recordingLog()
  const applied: string[] = []
  let config = configOf(startText)
  const served = {
    get config() {
      return config
    },
    async apply(next: RegistryConfig) {
      await options.apply?.(next)
      config = next
      applied.push(next.registries.map(({ name }) => name).join())
    },
  }
  // No look by itself: a test says when.
  reloader = startReloader({
    path: file,
    text: startText,
    read: { env: {}, dataDir: folder },
    served,
    clock,
    log,
    pollMs: 1e9,
    debounceMs: options.debounceMs ?? 1e9,
  })
  const logged = (part: string) => until(() => lines.find(({ msg }) => msg.includes(part)))
  return { clock, lines, applied, logged, trigger: () => reloader?.trigger() }
}

const times = (lines: readonly LogLine[], part: string) => lines.filter(({ msg }) => msg.includes(part)).length

describe('startReloader', () => {
  it('notices what has changed between reading the file and watching it', async () => {
    writeFileSync(file, text('two'))
    const { applied } = start()
    await until(() => applied.length === 1)
    expect(applied).toEqual(['two'])
  })

  it('leaves everything as it is when the file is the same, and applies it on request', async () => {
    writeFileSync(file, text('one'))
    const { applied, trigger } = start()
    trigger()
    await until(() => applied.length === 1)
    expect(applied).toEqual(['one'])
  })

  it('refuses what is bad, gone or needs a restart, with the reason, and goes on', async () => {
    writeFileSync(file, text('one'))
    const { applied, lines, logged, trigger } = start()
    writeFileSync(file, text('Bad'))
    trigger()
    expect((await logged('is refused'))['problems']).toEqual([
      expect.stringContaining(`${file}:2:21: registries[0].name: must be a DNS label`),
    ])
    unlinkSync(file)
    trigger()
    // More than one when a look that was under way has found it gone already.
    await until(() => times(lines, 'is refused') >= 2)
    expect(lines.at(-1)?.['problems']).toEqual([`${file}: does not exist`])
    writeFileSync(file, text('two', 'storage: {memory: true}\n'))
    trigger()
    await logged('another store needs a restart')
    writeFileSync(file, text('three'))
    trigger()
    await until(() => applied.includes('three'))
    // A look that was under way when the file was written may have found it already.
    expect(new Set(applied.filter((names) => names !== 'one'))).toEqual(new Set(['three']))
  })

  it('tells once that the file is away, however often others in its folder change', async () => {
    const { clock, lines, trigger } = start({ debounceMs: 1 })
    await until(() => times(lines, 'is refused') === 1)
    for (let i = 0; i < 3; i++) {
      writeFileSync(join(folder, 'other.log'), String(i))
      await until(() => clock.pending > 1) // the folder was seen to change
      await clock.advance(1)
    }
    trigger()
    await until(() => times(lines, 'is refused') === 2)
    expect(times(lines, 'is refused')).toBe(2)
  })

  it('tries again, after a while, what could not be applied', async () => {
    writeFileSync(file, text('two'))
    let broken = true
    const { applied, clock, lines } = start({
      apply: async () => {
        if (broken) throw new Error('the database does not answer')
      },
    })
    await until(() => times(lines, 'cannot be applied') === 1)
    await clock.advance(2_000)
    await until(() => times(lines, 'cannot be applied') === 2)
    broken = false
    await clock.advance(4_000)
    await until(() => applied.length === 1)
    expect(lines.find(({ msg }) => msg.includes('cannot be applied'))?.['error']).toBe('the database does not answer')
  })
})
