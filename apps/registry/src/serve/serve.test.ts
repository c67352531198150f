import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer, get } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { startRegistry } from '../testing/run-registry.ts'
import { until } from '../testing/until.ts'

let folder: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'registry-serve-'))
})

afterEach(() => rmSync(folder, { recursive: true }))

const configFile = () => join(folder, 'config.yaml')
const ANONYMOUS = 'auth: {mode: anonymous}\nstorage: {memory: true}\n'

function registries(...names: string[]): string {
  return `sources: [{name: own, managed: {}}]\nregistries:\n${names.map((name) => `  - {name: ${name}, sources: [own]}\n`).join('')}${ANONYMOUS}`
}

/** On a connection of its own, so that nothing is left open when the server stops. */
function ask(url: string, headers: Record<string, string> = {}): Promise<{ status: number | undefined; body: string }> {
  return new Promise((resolve, reject) => {
    const request = get(url, { agent: false, headers }, (answer) => {
      let body = ''
      answer.setEncoding('utf8').on('data', (text: string) => {
        body += text
      })
      answer.on('end', () => resolve({ status: answer.statusCode, body }))
    })
    request.on('error', reject)
  })
}

const statusOf = async (url: string, headers: Record<string, string> = {}) => (await ask(url, headers)).status

describe('serve', () => {
  it('serves the bundled catalog without a file, and says how to ask', async () => {
    await using registry = await startRegistry(['--data-dir', folder], { terminal: true })
    await until(async () => (await statusOf(`${registry.internalUrl}/readiness`)) === 200)
    const answer: unknown = JSON.parse((await ask(`${registry.url}/registry/default/v0.1/servers?limit=100`)).body)
    expect(answer).toMatchObject({ servers: expect.arrayContaining([expect.objectContaining({ server: expect.anything() })]) })
    expect(registry.printed()).toContain(`curl '${registry.url}/registry/default/v0.1/servers?limit=5'`)
    expect(await statusOf(`${registry.url}/health`)).toBe(200)
    expect(await statusOf(`${registry.internalUrl}/version`)).toBe(200)
    const metrics = (await ask(`${registry.internalUrl}/metrics`)).body
    expect(metrics).toContain('thv_registry_requests_total')
    expect(metrics).toMatch(/^toolhive_memory_releases_total\{result="done"\} \d+$/m)
    expect(await statusOf(`${registry.internalUrl}/registry/default/v0.1/servers`)).toBe(404)
    expect(await statusOf(`${registry.url}/metrics`)).toBe(404)
  })

  it('takes requests for the stop delay when it is to end', async () => {
    writeFileSync(configFile(), registries('a'))
    const registry = await startRegistry(['--config', configFile()], { env: { THV_REGISTRY_STOP_DELAY: '3s' } })
    const path = `${registry.url}/registry/a/v0.1/servers`
    await until(async () => (await statusOf(path)) === 200)
    let isOver = false
    const ended = Promise.resolve(registry[Symbol.asyncDispose]()).then(() => {
      isOver = true
    })
    const { status } = await ask(path)
    expect([status, isOver]).toEqual([200, false])
    await ended
    await expect(ask(path)).rejects.toThrow(/ECONNREFUSED|ECONNRESET/) // the latter on a kept connection whose end is not seen yet
  })

  it.each(['soon', '16s', '-1s'])('refuses the stop delay %s', async (delay) => {
    await expect(startRegistry(['--data-dir', folder], { env: { THV_REGISTRY_STOP_DELAY: delay } })).rejects.toThrow('at most 15s')
  })

  it('answers only to names of this machine without authentication', async () => {
    writeFileSync(configFile(), registries('a'))
    await using registry = await startRegistry(['--config', configFile()])
    const path = `${registry.url}/registry/a/v0.1/servers`
    await until(async () => (await statusOf(path, { host: 'localhost' })) === 200)
    expect(await statusOf(path, { host: 'rebound.example.com' })).toBe(403)
    writeFileSync(configFile(), `${registries('a')}http: {allowedHosts: [registry.example.com]}\n`)
    await until(async () => (await statusOf(path, { host: 'registry.example.com' })) === 200)
    expect(await statusOf(path, { host: 'localhost' })).toBe(403)
  })

  it('takes over a changed file without failing a request, and refuses a bad one', async () => {
    writeFileSync(configFile(), registries('stays'))
    await using registry = await startRegistry(['--config', configFile()])
    const path = (name: string) => `${registry.url}/registry/${name}/v0.1/servers`
    await until(async () => (await statusOf(path('stays'))) === 200)

    let asking = true
    const answers = new Map<number | undefined, number>()
    const client = (async () => {
      while (asking) {
        const status = await statusOf(path('stays'))
        answers.set(status, (answers.get(status) ?? 0) + 1)
      }
    })()
    for (const round of [1, 2, 3]) {
      writeFileSync(join(folder, 'next'), registries('stays', `more-${round}`))
      renameSync(join(folder, 'next'), configFile())
      await until(async () => (await statusOf(path(`more-${round}`))) === 200)
    }
    writeFileSync(configFile(), registries('stays', 'Bad'))
    const refused = await until(() => registry.lines.find(({ msg }) => msg.includes('is refused')))
    expect(refused['problems']).toEqual([expect.stringMatching(/config\.yaml:4:12: registries\[1\]\.name: must be a DNS label/)])
    expect(await statusOf(path('more-3'))).toBe(200)
    writeFileSync(configFile(), registries('stays', 'good'))
    await until(async () => (await statusOf(path('good'))) === 200)
    expect(await statusOf(path('more-3'))).toBe(404)
    asking = false
    await client
    expect([...answers.keys()]).toEqual([200])
  })

  it('follows the links of a ConfigMap, and reads the file again on SIGHUP', async () => {
    const at = (...parts: string[]) => join(folder, ...parts)
    mkdirSync(at('..1'))
    writeFileSync(at('..1', 'config.yaml'), registries('one'))
    symlinkSync('..1', at('..data'))
    symlinkSync(join('..data', 'config.yaml'), configFile())
    await using registry = await startRegistry(['--config', configFile()])
    await until(async () => (await statusOf(`${registry.url}/registry/one/v0.1/servers`)) === 200)
    mkdirSync(at('..2'))
    writeFileSync(at('..2', 'config.yaml'), registries('two'))
    symlinkSync('..2', at('..data_tmp'))
    renameSync(at('..data_tmp'), at('..data'))
    await until(async () => (await statusOf(`${registry.url}/registry/two/v0.1/servers`)) === 200)
    expect(await statusOf(`${registry.url}/registry/one/v0.1/servers`)).toBe(404)
    const before = registry.lines.filter(({ msg }) => msg.includes('is in force')).length
    registry.hangup()
    await until(() => registry.lines.filter(({ msg }) => msg.includes('is in force')).length > before)
  })

  it('asks for tokens as soon as the file says so, and says what cannot be changed', async () => {
    writeFileSync(configFile(), registries('a'))
    await using registry = await startRegistry(['--config', configFile()])
    const path = `${registry.url}/registry/a/v0.1/servers`
    await until(async () => (await statusOf(path)) === 200)
    const oauth = registries('a').replace(
      'mode: anonymous',
      'oauth: {providers: [{name: idp, issuerUrl: "http://127.0.0.1:9", audience: r}]}',
    )
    writeFileSync(configFile(), oauth)
    await until(async () => (await statusOf(path)) === 401)
    writeFileSync(configFile(), registries('a').replace('storage: {memory: true}', `storage: {path: ${folder}/x.db}`))
    await until(() => registry.lines.some(({ msg }) => msg.includes('another store needs a restart')))
    expect(await statusOf(path)).toBe(401)
  })

  it('serves without an internal address if that is taken, and not without the public one', async () => {
    writeFileSync(configFile(), registries('a'))
    const other = createServer().listen(0, '127.0.0.1')
    await new Promise((resolve) => other.once('listening', resolve))
    const bound = other.address()
    const taken = `127.0.0.1:${typeof bound === 'object' ? bound?.port : ''}`
    try {
      await using registry = await startRegistry(['--config', configFile(), '--internal-address', taken])
      expect(registry.internalUrl).toBeUndefined()
      expect(registry.lines.some(({ level, msg }) => level === 'error' && msg.includes('internal address'))).toBe(true)
      await expect(startRegistry(['--config', configFile(), '--address', taken])).rejects.toThrow(/cannot listen/)
    } finally {
      other.close()
    }
  })

  it('finishes requests in work before it stops', async () => {
    writeFileSync(configFile(), registries('a'))
    const registry = await startRegistry(['--config', configFile()])
    await until(async () => (await statusOf(`${registry.url}/registry/a/v0.1/servers`)) === 200)
    const answers = Array.from({ length: 20 }, () => statusOf(`${registry.url}/registry/a/v0.1/servers`))
    await Promise.race(answers)
    await registry[Symbol.asyncDispose]()
    for (const answer of await Promise.allSettled(answers)) if (answer.status === 'fulfilled') expect([200, 503]).toContain(answer.value)
    await expect(statusOf(`${registry.url}/health`)).rejects.toThrow()
  })
})
