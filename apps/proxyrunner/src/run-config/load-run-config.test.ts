import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { TestClock } from '@thv/kernel/clock'
import { isRunConfigError } from '@thv/runconfig/run-config-errors'
import { runConfigChecksum } from '@thv/runconfig/run-config-mount'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type LoadOptions, loadRunConfig, RUN_CONFIG_PATHS } from './load-run-config.ts'

const MINIMAL = { name: 'demo', image: 'x:1', transport: 'stdio' }

describe('loadRunConfig', () => {
  let folder: string
  let log: string[]
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'thv-runconfig-'))
    log = []
  })
  afterEach(() => rm(folder, { recursive: true, force: true }))

  const file = (name = 'runconfig.json') => join(folder, name)
  const write = (content: unknown, name?: string) => writeFile(file(name), typeof content === 'string' ? content : JSON.stringify(content))
  const load = (more: Partial<LoadOptions> = {}) => loadRunConfig({ configPath: file(), env: {}, log: (line) => log.push(line), ...more })

  it('looks in three places, in order', async () => {
    expect(RUN_CONFIG_PATHS).toEqual(['/etc/runconfig/runconfig.json', '/etc/toolhive/runconfig.json', './runconfig.json'])
    const searchPaths = ['a.json', 'b.json', 'c.json'].map(file)
    await write({ ...MINIMAL, name: 'second' }, 'b.json')
    await write({ ...MINIMAL, name: 'third' }, 'c.json')
    const loaded = await load({ configPath: undefined, searchPaths })
    expect([loaded.config.name, loaded.file]).toEqual(['second', file('b.json')])
  })

  it('names the places when there is none', async () => {
    const error = await load({ configPath: undefined, searchPaths: ['/nowhere/a.json', '/nowhere/b.json', '/nowhere/c.json'] }).catch(
      (e) => e,
    )
    expect(isRunConfigError(error, 'run_config_missing')).toBe(true)
    expect(error.message).toContain('/nowhere/a.json, /nowhere/b.json, /nowhere/c.json')
    expect(error.message).toContain('--config')
    await expect(load({ configPath: '/nowhere/x.json' })).rejects.toThrow('/nowhere/x.json does not exist')
  })

  it('does not pass over a file that it cannot read', async () => {
    await mkdir(file('a.json'))
    await write(MINIMAL, 'b.json')
    await expect(load({ configPath: undefined, searchPaths: [file('a.json'), file('b.json')] })).rejects.toThrow(
      /a\.json cannot be read \(EISDIR\)/,
    )
  })

  it('says where the JSON is wrong, without quoting it', async () => {
    await write('{\n  "name": "demo",\n  "oidc_config": { "ClientSecret": hunter2 }\n}')
    const error = await load().catch((e) => e)
    expect(isRunConfigError(error, 'run_config_invalid')).toBe(true)
    expect(error.message).toContain('line 3, column 36')
    expect(error.message).not.toContain('hunter2')
  })

  it('lists what is wrong with the document', async () => {
    await write({ name: 'demo', transport: 'tcp', port: 'x' })
    const error = await load().catch((e) => e)
    expect(error.message).toMatch(/has 2 problems: transport expects one of .*; port expects a whole number/)
    expect(error.details.problems).toHaveLength(2)
  })

  it('rejects a document that asks for middleware that is not built', async () => {
    const oidc = { Issuer: 'https://idp.example.com', ClientSecret: 'hunter2' }
    await write({ ...MINIMAL, oidc_config: oidc, isolate_network: true })
    const error = await load().catch((e) => e)
    expect(isRunConfigError(error, 'middleware_unsupported')).toBe(true)
    expect(error.message).toContain('isolate_network')
    expect(JSON.stringify([error.message, error.details])).not.toContain('hunter2')
  })

  it('lets the command line and the pod win over the file', async () => {
    await write({ ...MINIMAL, mcpserver_generation: 3, k8s_pod_template_patch: '{"spec":{"nodeName":"a"}}' })
    const { config } = await load({ image: 'y:2', podPatch: '{"spec":{"nodeName":"b"}}', env: { THV_MCPSERVER_GENERATION: '7' } })
    expect(config.image).toBe('y:2')
    expect(config.mcpserver_generation).toBe(7)
    expect(config.k8s_pod_template_patch).toEqual({ spec: { nodeName: 'b' } })
  })

  it('warns of a generation that is no number', async () => {
    await write({ ...MINIMAL, mcpserver_generation: 3 })
    const { config, warnings } = await load({ env: { THV_MCPSERVER_GENERATION: '-1' } })
    expect(config.mcpserver_generation).toBe(3)
    expect(warnings.map(({ path }) => path)).toEqual(['THV_MCPSERVER_GENERATION'])
  })

  describe('with env_file_dir', () => {
    it('adds the variables of all its files, which win', async () => {
      const dir = join(folder, 'env')
      await mkdir(join(dir, '..data-1'), { recursive: true })
      await writeFile(join(dir, '..data-1', 'b'), 'export QUOTED="a b"\nB=2\n')
      await symlink(join(dir, '..data-1', 'b'), join(dir, 'b'))
      await writeFile(join(dir, 'a'), '# comment\n\nA=1\r\nB=1\nURL=https://x/?a=b\n')
      await writeFile(join(dir, '.hidden'), 'not a line')
      await write({ ...MINIMAL, env_vars: { A: '0', KEPT: 'yes' }, env_file_dir: dir })
      const { config } = await load()
      expect(config.env_vars).toEqual({ A: '1', KEPT: 'yes', B: '2', URL: 'https://x/?a=b', QUOTED: 'a b' })
    })

    it('names file and line of what is no variable, not what stands there', async () => {
      const dir = join(folder, 'env')
      await mkdir(dir)
      await writeFile(join(dir, 'a'), 'A=1\nhunter2\n')
      await write({ ...MINIMAL, env_file_dir: dir })
      const error = await load().catch((e) => e)
      expect(error.message).toContain(`${join(dir, 'a')} line 2 expects KEY=VALUE`)
      expect(error.message).not.toContain('hunter2')
      await write({ ...MINIMAL, env_file_dir: '/nowhere' })
      await expect(load()).rejects.toThrow('the folder /nowhere cannot be read (ENOENT)')
    })
  })

  describe('with a checksum', () => {
    const wanted = JSON.stringify({ ...MINIMAL, name: 'wanted' })
    const env = { THV_RUNCONFIG_CHECKSUM: runConfigChecksum(wanted) }

    it('takes the file at once when it is the right one', async () => {
      await write(wanted)
      expect((await load({ env })).config.name).toBe('wanted')
      expect(log).toEqual([])
    })

    it('waits until the file is the right one, and says so once', async () => {
      const clock = new TestClock()
      await write(MINIMAL)
      const loading = load({ env, clock })
      await until(() => clock.pending > 0)
      await write(wanted)
      await keepAdvancing(clock, loading)
      expect((await loading).config.name).toBe('wanted')
      expect(log).toHaveLength(1)
      expect(log[0]).toContain('THV_RUNCONFIG_CHECKSUM')
    })

    it('gives up after its limit', async () => {
      const clock = new TestClock()
      await write(MINIMAL)
      const loading = load({ env, clock, checksumLimitMs: 60_000 })
      const failed = expect(loading).rejects.toThrow(/did not become the one of THV_RUNCONFIG_CHECKSUM within 60 s/)
      await keepAdvancing(clock, loading)
      await failed
    })

    it('ends when the signal aborts', async () => {
      await write(MINIMAL)
      const stop = new AbortController()
      const loading = load({ env, signal: stop.signal })
      stop.abort(new Error('stopped'))
      await expect(loading).rejects.toThrow('stopped')
    })
  })
})

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 1))
}

async function keepAdvancing(clock: TestClock, promise: Promise<unknown>): Promise<void> {
  let settled = false
  const settle = () => {
    settled = true
  }
  promise.then(settle, settle)
  while (!settled) {
    await clock.advance(1_000)
    await new Promise((resolve) => setTimeout(resolve, 1))
  }
}
