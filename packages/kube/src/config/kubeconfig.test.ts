import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { errorMessage, ThvError } from '@thv/kernel/errors'
import { createCertificate } from '@thv/testkit/cluster/identity/certificate'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { loadKubeconfig } from './kubeconfig.ts'
import { parseKubeconfig } from './kubeconfig-file.ts'

const SECRET = 'TOPsecretVALUE'
const pair = createCertificate({ commonName: 'test', ca: true })
const stranger = createCertificate({ commonName: 'other', ca: true })
const base64 = (text: string) => Buffer.from(text).toString('base64')

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'kubeconfig-'))
  await mkdir(join(folder, 'pki'))
  await writeFile(join(folder, 'pki/ca.crt'), pair.certPem)
  await writeFile(join(folder, 'pki/me.crt'), pair.certPem)
  await writeFile(join(folder, 'pki/me.key'), pair.keyPem)
  await writeFile(join(folder, 'token'), 'file-token\n')
  await writeFile(join(folder, 'rubbish'), SECRET)
})
afterAll(() => rm(folder, { recursive: true }))

interface Parts {
  cluster?: unknown
  user?: unknown
  context?: unknown
  root?: Record<string, unknown>
}

const server = 'https://api.test:6443'
const EXEC = { apiVersion: 'client.authentication.k8s.io/v1', command: 'aws', interactiveMode: 'Never' }

function config({ cluster = { server }, user = {}, context = { cluster: 'c', user: 'u' }, root = {} }: Parts): string {
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'x',
    contexts: [{ name: 'x', context }],
    clusters: [{ name: 'c', cluster }],
    users: [{ name: 'u', user }],
    ...root,
  })
}

let files = 0
async function load(text: string, context?: string) {
  const path = join(folder, `config-${files++}`)
  await writeFile(path, text)
  return await loadKubeconfig({ path, hasTerminal: false, ...(context !== undefined && { context }) })
}

describe('loadKubeconfig', () => {
  it.each<[string, Parts, object, string | undefined]>([
    ['nothing but a server', {}, { server, tls: {} }, undefined],
    ['a context without a user', { context: { cluster: 'c' } }, { tls: {} }, undefined],
    ['a namespace', { context: { cluster: 'c', user: 'u', namespace: 'team' } }, { namespace: 'team' }, undefined],
    ['a token', { user: { token: 'abc' } }, {}, 'Bearer abc'],
    ['a relative token file', { user: { tokenFile: 'token' } }, {}, 'Bearer file-token'],
    ['a token file beside a token', { user: { token: 'abc', tokenFile: './token' } }, {}, 'Bearer file-token'],
    ['a password', { user: { username: 'jö', password: 'p:w' } }, {}, `Basic ${base64('jö:p:w')}`],
    ['a user name alone', { user: { username: 'joe' } }, {}, `Basic ${base64('joe:')}`],
    ['a CA as data', { cluster: { server, 'certificate-authority-data': base64(pair.certPem) } }, { tls: { ca: pair.certPem } }, undefined],
    [
      'base64 with line breaks',
      { cluster: { server, 'certificate-authority-data': `${base64(pair.certPem).slice(0, 64)}\n${base64(pair.certPem).slice(64)}\n` } },
      { tls: { ca: pair.certPem } },
      undefined,
    ],
    ['a CA as a relative path', { cluster: { server, 'certificate-authority': 'pki/ca.crt' } }, { tls: { ca: pair.certPem } }, undefined],
    [
      'data before a path',
      { cluster: { server, 'certificate-authority': 'absent', 'certificate-authority-data': base64(pair.certPem) } },
      { tls: { ca: pair.certPem } },
      undefined,
    ],
    [
      'a client certificate as data',
      { user: { 'client-certificate-data': base64(pair.certPem), 'client-key-data': base64(pair.keyPem) } },
      { tls: { cert: pair.certPem, key: pair.keyPem } },
      undefined,
    ],
    [
      'a client certificate as files',
      { user: { 'client-certificate': 'pki/me.crt', 'client-key': 'pki/me.key' } },
      { tls: { cert: pair.certPem, key: pair.keyPem } },
      undefined,
    ],
    [
      'TLS settings',
      { cluster: { server, 'tls-server-name': 'api.internal', 'insecure-skip-tls-verify': true } },
      { tls: { serverName: 'api.internal', insecureSkipVerify: true } },
      undefined,
    ],
    [
      'empty and null fields',
      {
        user: { token: '', tokenFile: null, exec: null, as: '' },
        cluster: { server, 'proxy-url': '', 'certificate-authority-data': null },
      },
      { tls: {} },
      undefined,
    ],
    [
      'extensions and preferences',
      { root: { preferences: {}, extensions: [{ name: 'x' }] }, cluster: { server, extensions: [{}], 'disable-compression': true } },
      { server },
      undefined,
    ],
    ['a broken entry that is not used', { root: { users: [{ name: 'u' }, { name: 'other', user: { exec: {} } }] } }, { server }, undefined],
    [
      'an address with a path',
      { cluster: { server: 'https://rancher.test/k8s/clusters/c-1' } },
      { server: 'https://rancher.test/k8s/clusters/c-1' },
      undefined,
    ],
  ])('%s', async (_name, parts, expected, header) => {
    const connection = await load(config(parts))
    expect(connection).toMatchObject(expected)
    expect(await connection.auth.header()).toBe(header)
  })

  it.each<[string, string, string]>([
    ['no YAML', `a: b: ${SECRET}`, 'line 1: not YAML'],
    ['YAML broken further down', `apiVersion: v1\nusers:\n- name: u\n  user: {token: "${SECRET}\n`, 'not YAML'],
    ['the same key twice', `users: []\nusers: []\nx: ${SECRET}`, 'line 2: not YAML (DUPLICATE_KEY)'],
    ['two documents', `a: 1\n---\nb: ${SECRET}`, 'not YAML (MULTIPLE_DOCS)'],
    [
      'an alias bomb',
      `a: &a [${SECRET}]\n${'bcdefgh'
        .split('')
        .map((n, i) => `${n}: &${n} [${`*${'abcdefgh'[i]},`.repeat(9)}]\n`)
        .join('')}`,
      'aliases',
    ],
    ['a list', '[]', 'file: not a mapping'],
    ['a text', SECRET, 'file: not a mapping'],
    ['nothing', '', 'current-context: is not set'],
    ['another kind', config({ root: { kind: 'Pod' } }), 'kind: must be Config'],
    ['clusters that are no list', config({ root: { clusters: {} } }), 'clusters: must be a list'],
    ['a user that is a text', config({ root: { users: [SECRET] } }), 'users[0]: must be a mapping'],
    ['a user without a name', config({ root: { users: [{ user: { token: SECRET } }] } }), 'users[0].name: is missing'],
    ['a name that is a number', config({ root: { contexts: [{ name: 1 }] } }), 'contexts[0].name: must be a string'],
    ['the same name twice', config({ root: { clusters: [{ name: 'c' }, { name: 'c' }] } }), 'clusters[1].name: "c" stands there twice'],
    ['a user whose body is a text', config({ user: SECRET }), 'users["u"].user: must be a mapping'],
    ['no current context', config({ root: { 'current-context': '' } }), 'current-context: is not set'],
    ['an unknown context', config({ root: { 'current-context': 'y' } }), 'there is no "y" (there is: x)'],
    ['a context without a cluster', config({ context: { user: 'u' } }), 'contexts["x"].context.cluster: is missing'],
    ['an unknown cluster', config({ context: { cluster: 'd', user: 'u' } }), 'context.cluster: there is no "d" in clusters'],
    ['an unknown user', config({ context: { cluster: 'c', user: 'v' } }), 'context.user: there is no "v" in users'],
    ['a namespace that is a number', config({ context: { cluster: 'c', namespace: 7 } }), 'context.namespace: must be a string'],
    ['no server', config({ cluster: {} }), 'clusters["c"].cluster.server: is missing'],
    ['a server that is no URL', config({ cluster: { server: SECRET } }), 'cluster.server: the server address is not an http(s) URL'],
    [
      'a server with a password',
      config({ cluster: { server: `https://u:${SECRET}@x` } }),
      'cluster.server: the server address holds credentials',
    ],
    ['a server with a query', config({ cluster: { server: `https://x?t=${SECRET}` } }), 'cluster.server: the server address holds a query'],
    ['a proxy', config({ cluster: { server, 'proxy-url': `http://u:${SECRET}@p` } }), 'cluster.proxy-url: is not supported'],
    [
      'a CA that is not base64',
      config({ cluster: { server, 'certificate-authority-data': `${SECRET}!` } }),
      'cluster.certificate-authority-data: is not base64',
    ],
    [
      'a CA that is no PEM',
      config({ cluster: { server, 'certificate-authority-data': base64(SECRET) } }),
      'cluster.certificate-authority-data: does not hold PEM',
    ],
    ['a CA file that is not there', config({ cluster: { server, 'certificate-authority': 'absent' } }), 'absent cannot be read'],
    [
      'a CA file that is no PEM',
      config({ cluster: { server, 'certificate-authority': 'rubbish' } }),
      'cluster.certificate-authority: does not hold PEM',
    ],
    [
      'a CA that OpenSSL refuses',
      config({
        cluster: { server, 'certificate-authority-data': base64(`-----BEGIN CERTIFICATE-----\n${SECRET}\n-----END CERTIFICATE-----\n`) },
      }),
      'cannot be used',
    ],
    [
      'a CA and no verification',
      config({ cluster: { server, 'certificate-authority': 'pki/ca.crt', 'insecure-skip-tls-verify': true } }),
      'cluster.insecure-skip-tls-verify: contradicts',
    ],
    [
      'a flag that is a text',
      config({ cluster: { server, 'insecure-skip-tls-verify': 'true' } }),
      'cluster.insecure-skip-tls-verify: must be true or false',
    ],
    ['a certificate without a key', config({ user: { 'client-certificate': 'pki/me.crt' } }), 'user.client-key: is missing'],
    ['a key without a certificate', config({ user: { 'client-key': 'pki/me.key' } }), 'user.client-certificate: is missing'],
    [
      'a key of another certificate',
      config({ user: { 'client-certificate-data': base64(pair.certPem), 'client-key-data': base64(stranger.keyPem) } }),
      'user.client-certificate: certificate or key cannot be used (ERR_OSSL_X509_KEY_VALUES_MISMATCH)',
    ],
    ['a token that is a number', config({ user: { token: 42 } }), 'user.token: must be a string'],
    ['a token with a line break', config({ user: { token: `${SECRET}\nx: y` } }), 'user.token: holds characters'],
    ['a token beside a user name', config({ user: { token: SECRET, username: 'joe' } }), 'user.username: stands beside a token'],
    ['a password without a user name', config({ user: { password: SECRET } }), 'user.username: is missing'],
    [
      'an exec plugin without an apiVersion',
      config({ user: { exec: { command: 'aws', env: [{ name: 'A', value: SECRET }] } } }),
      'user.exec.apiVersion: must be client.authentication.k8s.io/v1 or client.authentication.k8s.io/v1beta1',
    ],
    ['an exec plugin without a command', config({ user: { exec: { ...EXEC, command: '' } } }), 'user.exec.command: is missing'],
    ['an exec plugin beside a token', config({ user: { exec: EXEC, token: SECRET } }), 'user.token: stands beside exec'],
    ['arguments that are no list', config({ user: { exec: { ...EXEC, args: SECRET } } }), 'user.exec.args: must be a list of strings'],
    ['a variable without a name', config({ user: { exec: { ...EXEC, env: [{ value: SECRET }] } } }), 'user.exec.env[0].name: is missing'],
    ['variables that are none', config({ user: { exec: { ...EXEC, env: [SECRET] } } }), 'user.exec.env[0]: must be a mapping'],
    ['no interactiveMode in v1', config({ user: { exec: { ...EXEC, interactiveMode: null } } }), 'user.exec.interactiveMode: must be'],
    [
      'a plugin that needs a terminal',
      config({ user: { exec: { ...EXEC, interactiveMode: 'Always' } } }),
      'user.exec.interactiveMode: is Always, but there is no terminal',
    ],
    ['an exec that is no mapping', config({ user: { exec: SECRET } }), 'user.exec: must be a mapping'],
    [
      'an auth-provider',
      config({ user: { 'auth-provider': { name: 'gcp', config: { 'access-token': SECRET } } } }),
      'user.auth-provider: is not supported yet',
    ],
    [
      'an auth provider',
      config({ user: { 'auth-provider': { name: 'gcp', config: { 'access-token': SECRET } } } }),
      'user.auth-provider: is not supported yet; use a token',
    ],
    ['impersonation', config({ user: { token: SECRET, as: 'system:admin' } }), 'user.as: is not supported yet'],
    ['impersonated groups', config({ user: { token: SECRET, 'as-groups': ['x'] } }), 'user.as-groups: is not supported yet'],
  ])('refuses %s', async (_name, text, problem) => {
    const error = await load(text).catch((e: unknown) => e)
    expect(error).toBeInstanceOf(ThvError)
    expect(error).toMatchObject({ code: 'kubeconfig_invalid' })
    const shown = `${errorMessage(error)} ${JSON.stringify((error as ThvError).details)} ${String((error as ThvError).cause)}`
    expect(shown).toContain(problem)
    expect(shown).toContain(join(folder, 'config-'))
    expect(shown).not.toContain(SECRET)
    expect(shown).not.toContain(base64(SECRET))
  })

  it('refuses a token file that is not there when it is needed', async () => {
    const connection = await load(config({ user: { tokenFile: 'absent' } }))
    await expect(connection.auth.header()).rejects.toMatchObject({
      code: 'kubeconfig_invalid',
      message: expect.stringContaining(join(folder, 'absent')),
    })
  })

  it('takes the context it is given', async () => {
    const text = config({
      root: {
        contexts: [
          { name: 'x', context: { cluster: 'c' } },
          { name: 'y', context: { cluster: 'c', namespace: 'why' } },
        ],
      },
    })
    expect((await load(text, 'y')).namespace).toBe('why')
    await expect(load(text, 'z')).rejects.toThrow('there is no "z" (there is: x, y)')
  })

  describe('KUBECONFIG as a list', () => {
    const write = async (name: string, content: unknown) => {
      const path = join(folder, name)
      await mkdir(join(path, '..'), { recursive: true })
      await writeFile(path, JSON.stringify(content))
      return path
    }
    const env = (...paths: string[]) => ({ env: { KUBECONFIG: paths.join(delimiter) }, home: folder })

    it('the first file to name something wins, whole, and gaps are filled by later ones', async () => {
      const first = await write('list/one/config', {
        clusters: [{ name: 'c', cluster: { server: 'https://first' } }],
        users: [{ name: 'u', user: { tokenFile: 'tok' } }],
      })
      await writeFile(join(folder, 'list/one/tok'), 'first-token')
      const second = await write('list/two/config', {
        'current-context': 'x',
        contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
        clusters: [{ name: 'c', cluster: { server: 'https://second', 'tls-server-name': 'second' } }],
      })
      const connection = await loadKubeconfig(env('', join(folder, 'absent'), first, second, first))
      expect(connection).toMatchObject({ server: 'https://first', tls: {} })
      expect(connection.tls).not.toHaveProperty('serverName')
      expect(await connection.auth.header()).toBe('Bearer first-token')
    })

    it('files that are all absent are an error that names them', async () => {
      const [a, b] = [join(folder, 'absent-a'), join(folder, 'absent-b')]
      await expect(loadKubeconfig(env(a, b))).rejects.toThrow(`kubeconfig ${a}, ${b}: file: does not exist`)
    })

    it('falls back to the home folder', async () => {
      await write('.kube/config', JSON.parse(config({ cluster: { server: 'https://home' } })))
      expect((await loadKubeconfig({ env: {}, home: folder })).server).toBe('https://home')
      expect((await loadKubeconfig(env(''))).server).toBe('https://home')
    })

    it('a folder is no kubeconfig', async () => {
      await expect(loadKubeconfig({ path: folder })).rejects.toMatchObject({ code: 'kubeconfig_invalid' })
    })
  })

  it('meets any content with kubeconfig_invalid and nothing else', () => {
    const section = fc.constantFrom('clusters', 'users', 'contexts', 'current-context', 'kind', '__proto__')
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.dictionary(section, fc.jsonValue()).map((v) => JSON.stringify(v)),
        ),
        (text) => {
          try {
            parseKubeconfig('/some/config', text)
          } catch (error) {
            expect(error).toMatchObject({ code: 'kubeconfig_invalid' })
          }
        },
      ),
    )
  })
})
