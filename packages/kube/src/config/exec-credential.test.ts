import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { TestClock } from '@thv/kernel/clock'
import { errorMessage, type ThvError } from '@thv/kernel/errors'
import { createCertificate } from '@thv/testkit/cluster/identity/certificate'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createKubeClient } from '../client/client.ts'
import { configMaps } from '../objects/resource-types.ts'
import { sendJson, sendStatus, startLoopback } from '../testing/loopback-server.ts'
import { loadKubeconfig } from './kubeconfig.ts'

const V1 = 'client.authentication.k8s.io/v1'
const V1BETA1 = 'client.authentication.k8s.io/v1beta1'
const SECRET = 'TOPsecretVALUE'
const START = Date.UTC(2026, 0, 1)

/** Counts its runs in a file, and prints what `answer` evaluates to; `n` is the number of the run, `info` its input. */
const PLUGIN = `
const { appendFileSync, readFileSync } = require('node:fs')
const [, , log, answer] = process.argv
appendFileSync(log, JSON.stringify({ args: process.argv.slice(4), extra: process.env.EXTRA, info: process.env.KUBERNETES_EXEC_INFO }) + '\\n')
const n = readFileSync(log, 'utf8').trim().split('\\n').length
const info = JSON.parse(process.env.KUBERNETES_EXEC_INFO)
const credential = (status) => JSON.stringify({ kind: 'ExecCredential', apiVersion: info.apiVersion, status })
const said = eval(answer)
if (said !== undefined) process.stdout.write(said)
`

describe('credential plugins', () => {
  let folder: string
  let log: string
  let clock: TestClock
  let files = 0
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'exec-'))
    await writeFile(join(folder, 'plugin.cjs'), PLUGIN)
  })
  afterAll(() => rm(folder, { recursive: true }))
  beforeEach(() => {
    log = join(folder, `log-${files++}`)
    clock = new TestClock(START)
  })

  interface Given {
    exec?: Record<string, unknown>
    cluster?: Record<string, unknown>
    server?: string
    hasTerminal?: boolean
  }

  async function connect(answer: string, { exec = {}, cluster = {}, server = 'https://127.0.0.1:1', hasTerminal = false }: Given = {}) {
    const path = join(folder, `config-${files++}`)
    const plugin = {
      apiVersion: V1,
      interactiveMode: 'Never',
      command: process.execPath,
      args: [join(folder, 'plugin.cjs'), log, answer],
      ...exec,
    }
    const document = {
      'current-context': 'x',
      contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
      clusters: [{ name: 'c', cluster: { server, ...cluster } }],
      users: [{ name: 'u', user: { exec: plugin } }],
    }
    await writeFile(path, JSON.stringify(document))
    return await loadKubeconfig({ path, clock, hasTerminal })
  }

  const runs = async () =>
    (await readFile(log, 'utf8').catch(() => ''))
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line) as { args: string[]; extra?: string; info: string })

  async function failure(promise: Promise<unknown>): Promise<string> {
    const error = await promise.then(
      () => undefined,
      (e: unknown) => e,
    )
    expect(error).toMatchObject({ code: 'exec_credential_failed' })
    const shown = `${errorMessage(error)} ${JSON.stringify((error as ThvError).details)}`
    expect(shown).not.toContain(SECRET)
    return shown
  }

  it.each([V1, V1BETA1])('is run when it is needed, once, with arguments and variables (%s)', async (apiVersion) => {
    const args = [join(folder, 'plugin.cjs'), log, 'credential({ token: "t" + n })', 'a b', '"c"']
    const { auth } = await connect('', { exec: { apiVersion, args, env: [{ name: 'EXTRA', value: 'more' }] } })
    expect(await runs()).toEqual([])
    expect(await Promise.all([auth.header(), auth.header(), auth.certificate?.()])).toEqual(['Bearer t1', 'Bearer t1', undefined])
    expect(await auth.header()).toBe('Bearer t1')
    const all = await runs()
    expect(all).toMatchObject([{ args: ['a b', '"c"'], extra: 'more' }])
    expect(JSON.parse(all[0]?.info ?? '')).toEqual({ kind: 'ExecCredential', apiVersion, spec: { interactive: false } })
  })

  it('tells of the cluster only when it is asked to', async () => {
    const { certPem } = createCertificate({ commonName: 'ca', ca: true })
    const cluster = {
      'certificate-authority-data': Buffer.from(certPem).toString('base64'),
      'tls-server-name': 'api.internal',
      extensions: [
        { name: 'other', extension: {} },
        { name: 'client.authentication.k8s.io/exec', extension: { audience: 'me' } },
      ],
    }
    const { auth } = await connect('credential({ token: "t" })', { exec: { provideClusterInfo: true }, cluster })
    await auth.header()
    expect(JSON.parse((await runs())[0]?.info ?? '').spec.cluster).toEqual({
      server: 'https://127.0.0.1:1',
      'certificate-authority-data': cluster['certificate-authority-data'],
      'tls-server-name': 'api.internal',
      config: { audience: 'me' },
    })
  })

  it('runs again when the credentials have expired, and not before', async () => {
    const expiry = new Date(START + 60_000).toISOString()
    const { auth } = await connect(`credential({ token: "t" + n, ...(n === 1 && { expirationTimestamp: ${JSON.stringify(expiry)} }) })`)
    expect(await auth.header()).toBe('Bearer t1')
    await clock.advance(50_000)
    expect(await auth.header()).toBe('Bearer t1')
    await clock.advance(10_000)
    expect(await auth.header()).toBe('Bearer t2')
    await clock.advance(3_600_000)
    expect(await auth.header()).toBe('Bearer t2')
  })

  it('runs again after a 401, but not for every one of them', async () => {
    const { auth } = await connect('credential({ token: "t" + n })')
    await auth.header()
    auth.invalidate()
    expect(await auth.header()).toBe('Bearer t2')
    auth.invalidate()
    expect(await auth.header()).toBe('Bearer t2')
    await clock.advance(10_000)
    auth.invalidate()
    expect(await auth.header()).toBe('Bearer t3')
  })

  it('renews the token of a call that the server refused', async () => {
    await using server = await startLoopback(({ headers }, response) => {
      if (headers.authorization === 'Bearer t2') sendJson(response, 200, { metadata: { name: 'web' } })
      else sendStatus(response, 401, { reason: 'Unauthorized' })
    })
    const client = createKubeClient(await connect('credential({ token: "t" + n })', { server: server.url }))
    expect(await client.get(configMaps, { namespace: 'n', name: 'web' })).toMatchObject({ metadata: { name: 'web' } })
    expect(await runs()).toHaveLength(2)
    await client.close()
  })

  it('shows client certificates, and the new ones after they have changed', async () => {
    const host = createCertificate({ commonName: 'host', hosts: ['127.0.0.1'], ca: true })
    const users = createCertificate({ commonName: 'users', ca: true })
    const people = ['ann', 'bob'].map((commonName) => createCertificate({ commonName, issuer: users }))
    const answers = people.map(({ certPem, keyPem }) => ({ clientCertificateData: certPem, clientKeyData: keyPem }))
    await using server = await startLoopback(
      (_request, response) => {
        const socket = response.socket as unknown as { getPeerCertificate(): { subject: { CN: string } } }
        sendJson(response, 200, { metadata: { name: socket.getPeerCertificate().subject.CN } })
      },
      { cert: host.certPem, key: host.keyPem, ca: users.certPem },
    )
    const expiry = JSON.stringify(new Date(START + 60_000).toISOString())
    const connection = await connect(
      `credential({ ...${JSON.stringify(answers)}[n - 1], expirationTimestamp: n === 1 ? ${expiry} : '' })`,
      {
        server: server.url,
        cluster: { 'certificate-authority-data': Buffer.from(host.certPem).toString('base64') },
      },
    )
    const client = createKubeClient(connection)
    const whoAmI = async () => (await client.get(configMaps, { namespace: 'n', name: 'x' })).metadata.name
    expect(await whoAmI()).toBe('ann')
    expect(await whoAmI()).toBe('ann')
    await clock.advance(60_000)
    expect(await whoAmI()).toBe('bob')
    await client.close()
  })

  it('says how to install what is missing', async () => {
    const { auth } = await connect('', { exec: { command: 'no-such-plugin', installHint: 'Install it with: get plugin' } })
    expect(await failure(auth.header())).toContain('"no-such-plugin" is not installed. Install it with: get plugin')
  })

  it('takes a path for relative to the kubeconfig', async () => {
    const command = relative(folder, process.execPath)
    expect(command).toContain('/')
    const { auth } = await connect('credential({ token: "t" })', { exec: { command } })
    expect(await auth.header()).toBe('Bearer t')
    const missing = await connect('', { exec: { command: './missing' } })
    expect(await failure(missing.auth.header())).toContain(join(dirname(log), 'missing'))
  })

  it.each([
    ['an error', `process.stderr.write('${SECRET}'), process.exit(3)`, 'ended with code 3'],
    ['a signal', `process.kill(process.pid, 'SIGKILL')`, 'was ended by SIGKILL'],
    ['nothing', '""', 'did not print a JSON object'],
    ['no JSON', `'${SECRET}'`, 'did not print a JSON object'],
    ['another document', `JSON.stringify({ kind: 'Secret', data: '${SECRET}' })`, 'did not print an ExecCredential'],
    [
      'another version',
      `JSON.stringify({ kind: 'ExecCredential', apiVersion: '${V1BETA1}', status: { token: '${SECRET}' } })`,
      'in another apiVersion than client.authentication.k8s.io/v1',
    ],
    ['no credentials', 'credential({})', 'gave neither a token nor a certificate'],
    ['no status', 'credential(undefined)', 'gave neither a token nor a certificate'],
    ['half a pair', `credential({ clientKeyData: '${SECRET}' })`, 'without its key, or the other way round'],
    ['a pair that is none', `credential({ clientKeyData: '${SECRET}', clientCertificateData: '${SECRET}' })`, 'cannot be used'],
    ['a token with a line end', `credential({ token: '${SECRET}\\n' })`, 'characters that no token has'],
    ['a token that is no text', `credential({ token: ['${SECRET}'] })`, 'gave a token that is no text'],
    ['a time that is none', `credential({ token: '${SECRET}', expirationTimestamp: 'soon' })`, 'expirationTimestamp that is no time'],
    ['too much', `'${SECRET}' + 'x'.repeat(2 << 20)`, 'printed more than'],
  ])('fails by name, without a secret, on %s', async (_name, answer, problem) => {
    const { auth } = await connect(answer)
    expect(await failure(auth.header())).toContain(problem)
    expect(await failure(auth.header())).toContain(problem) // a failure is not kept
    expect(await runs()).toHaveLength(2)
  })

  it('ends a plugin that does not, and does not wait for its children', async () => {
    const { auth } = await connect(
      `require('node:child_process').spawn('sleep', ['3'], { stdio: 'inherit' }), process.on('SIGTERM', () => {}), setInterval(() => {}, 1000), undefined`,
    )
    const waiting = failure(auth.header())
    for (let n = 0; (await runs()).length === 0 && n < 2_000; n++) await new Promise((resolve) => setTimeout(resolve, 5))
    await clock.advance(60_000)
    expect(await waiting).toContain('has not ended within 60000 ms')
    await clock.advance(2_000)
  })

  it('may use a terminal where there is one and it may', async () => {
    const answer = 'credential({ token: String(info.spec.interactive) })'
    const header = async (exec: object, hasTerminal: boolean) => (await connect(answer, { exec: { ...exec }, hasTerminal })).auth.header()
    expect(await header({ interactiveMode: 'IfAvailable' }, true)).toBe('Bearer true')
    expect(await header({ interactiveMode: 'IfAvailable' }, false)).toBe('Bearer false')
    expect(await header({ interactiveMode: 'Never' }, true)).toBe('Bearer false')
    expect(await header({ interactiveMode: 'Always' }, true)).toBe('Bearer true')
    expect(await header({ apiVersion: V1BETA1, interactiveMode: undefined }, true)).toBe('Bearer true')
  })
})
