/* biome-ignore-all lint/suspicious/noTemplateCurlyInString: configurations hold such */
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type ConfigProblem, problemLine } from './config-problem.ts'
import { defaultConfig } from './default-config.ts'
import { readConfig, readConfigFile } from './read-config.ts'
import type { RegistryConfig } from './registry-config.ts'
import { BAD_CONFIGS } from './testing/bad-configs.ts'

const read = (text: string, env: Record<string, string> = {}, authMode?: string) =>
  readConfig(text, { env, dataDir: '/data', folder: '/etc/registry', ...(authMode !== undefined && { authMode }) })

function good(text: string, env: Record<string, string> = {}, authMode?: string): RegistryConfig {
  const result = read(text, env, authMode)
  if (!result.ok) throw new Error(result.problems.map((problem) => problemLine('config.yaml', problem)).join('\n'))
  return result.config
}

function bad(text: string, env: Record<string, string> = {}): string[] {
  const result = read(text, env)
  return result.ok ? ['no problem'] : result.problems.map(lineOf)
}

const lineOf = ({ line, column, path, message }: ConfigProblem) => `${line}:${column} ${path}: ${message}`

const BASE = 'sources: [{name: a, managed: {}}]\nregistries: [{name: default, sources: [a]}]\nauth: {mode: anonymous}\n'

describe('bad configurations', () => {
  it.each(BAD_CONFIGS)('%s', (_, yaml, ...problems) => {
    const found = bad(yaml, { SECRET: 'hunter2' })
    expect(found).toEqual(problems)
    expect(found.join()).not.toContain('hunter2')
  })

  it('tells all problems at once, in the order of the file', () => {
    const text = 'sources:\n  - name: A\n    git: {}\nregistries:\n  - name: x\n    sources: [b]\nhttp:\n  compresion: true\naudit: {}\n'
    expect(bad(text).map((problem) => problem.split(': ')[0])).toEqual([
      '1:1 auth.oauth.providers',
      '2:11 sources[0].name',
      '3:5 sources[0].git.repository',
      '5:11 registries[0].name',
      '6:15 registries[0].sources[0]',
      '8:3 http.compresion',
      '9:1 audit',
    ])
  })

  it('survives nesting without end and aliases of aliases', () => {
    expect(bad('['.repeat(1_000_000))).toEqual(['0:0 : is nested too deeply'])
    expect(bad('- '.repeat(20_000)).join()).toMatch(/nested too deeply/)
    const bomb = Array.from({ length: 12 }, (_, level) => `x${level}: &x${level} [${`*x${level - 1}, `.repeat(level === 0 ? 0 : 9)}]`).join(
      '\n',
    )
    expect(bad(`${bomb}\n`).join()).toMatch(/^\d+:\d+ : the file is too large or nested too deeply/)
    expect(bad(`registryName: ${'x'.repeat(1 << 20)}\n`)).toEqual(['0:0 : is larger than 1048576 bytes'])
  })

  it('takes any text without throwing', () => {
    const word = fc.constantFrom(
      'sources',
      'registries',
      'auth',
      'name',
      ': ',
      '- ',
      '\n',
      '  ',
      '{',
      '}',
      '[',
      ']',
      '&a ',
      '*a',
      '!!str ',
      '"',
      '${X}',
      '|',
      'git',
    )
    fc.assert(
      fc.property(fc.array(word, { maxLength: 60 }), (words) => void expect(() => read(words.join(''))).not.toThrow()),
      { numRuns: 100 },
    )
    fc.assert(
      fc.property(
        fc.uint8Array({ maxLength: 80 }),
        (bytes) => void expect(() => read(Buffer.from(bytes).toString('latin1'))).not.toThrow(),
      ),
      { numRuns: 100 },
    )
  })

  it('takes any JSON in any place without throwing', () => {
    const key = fc.constantFrom(
      'sources',
      'registries',
      'auth',
      'oauth',
      'providers',
      'authz',
      'roles',
      'http',
      'cors',
      'origins',
      'database',
      'storage',
      'sync',
    )
    fc.assert(
      fc.property(key, key, fc.jsonValue({ maxDepth: 3 }), (outer, inner, value) => {
        expect(() => read(JSON.stringify({ [outer]: { [inner]: value } }))).not.toThrow()
        expect(() => read(JSON.stringify({ [outer]: [{ [inner]: value, name: value }] }))).not.toThrow()
      }),
      { numRuns: 100 },
    )
  })
})

describe('good configurations', () => {
  it('fills in what is left out', () => {
    expect(good(BASE)).toEqual({
      sources: [{ name: 'a', managed: {} }],
      registries: [{ name: 'default', sources: ['a'] }],
      auth: { mode: 'anonymous', publicPaths: [] },
      storage: { kind: 'sqlite', path: '/data/registry.db' },
      http: { compression: true, cacheSeconds: 0, publicHealth: true, maxBodyBytes: 1_048_576 },
      sync: {
        parallel: 4,
        leaseMs: 30_000,
        retryMs: 10_000,
        jitter: 0.1,
        allowedFolders: [],
        allowPrivateAddresses: false,
        maxFileBytes: 268_435_456,
      },
    })
  })

  it('resolves sync.allowedFolders at the folder of the file, and keeps auth.writeTokenFile', () => {
    const config = good(
      `${BASE.replace('{mode: anonymous}', '{mode: anonymous, writeTokenFile: /run/token}')}sync: {allowedFolders: [servers, /srv]}\n`,
    )
    expect(config.auth.writeTokenFile).toBe('/run/token')
    expect(config.sync.allowedFolders).toEqual(['/etc/registry/servers', '/srv'])
  })

  it('gives every fetched source the syncRequest of the file, and managed ones none', () => {
    const sources = '[{name: here, file: {path: a.json}}, {name: own, managed: {}}]'
    const config = good(`syncRequest: "7"\nsources: ${sources}\nregistries: [{name: all, sources: [here, own]}]\nauth: {mode: anonymous}\n`)
    expect(config.syncRequest).toBe('7')
    expect(config.sources).toMatchObject([{ name: 'here', syncRequest: '7' }, { name: 'own' }])
    expect(config.sources[1]).not.toHaveProperty('syncRequest')
  })

  it('reads the whole of a file and keeps the case of claims', () => {
    const config = good(`
registryName: demo
sources:
  - name: hive
    git: {repository: https://github.com/example/catalog, branch: main, path: data/registry.json, auth: {username: x, passwordFile: /secrets/t}}
    format: toolhive
    strict: true
    syncPolicy: {interval: 1h30m}
    filter: {names: {include: ["io.github.*"], exclude: []}, tags: {include: [], exclude: [beta]}}
    claims: {orgId: Platform, __proto__: x}
  - {name: up, api: {endpoint: "https://registry.example.com", timeout: 30s}, syncPolicy: {interval: 1h}}
  - {name: here, file: {path: servers.json}, syncPolicy: {interval: 5s}}
  - {name: own, managed: {}}
registries:
  - {name: all, sources: [own, here, up, hive], claims: {orgId: [A, b]}}
auth:
  mode: oauth
  publicPaths: [/health]
  oauth:
    resourceUrl: https://registry.example.com
    providers: [{name: idp, issuerUrl: https://idp.example.com, audience: registry}]
  authz: {roles: {superAdmin: [{Role: admin}]}}
database: {host: db, port: 5433, user: app, password: p, migrationUser: owner, database: registry, sslMode: verify-full, sslRootCert: /ca.pem}
http: {cors: {origins: ["https://ui.example.com"], maxAge: 1h}, allowedHosts: [registry.example.com], compression: false, cacheMaxAge: 1m}
sync: {parallel: 8, leaseDuration: 1m, retryInterval: 500ms, jitter: 0, allowPrivateAddresses: true}
`)
    expect(config.sources[0]).toMatchObject({
      format: 'toolhive',
      strict: true,
      intervalMs: 5_400_000,
      filter: { tags: { exclude: ['beta'] } },
    })
    expect(Object.entries(config.sources[0]?.claims ?? {})).toEqual([
      ['orgId', 'Platform'],
      ['__proto__', 'x'],
    ])
    expect(config.sources[2]?.file).toEqual({ path: '/etc/registry/servers.json' })
    expect(config.registries).toEqual([{ name: 'all', sources: ['own', 'here', 'up', 'hive'], claims: { orgId: ['A', 'b'] } }])
    expect(config.auth).toEqual({
      mode: 'oauth',
      publicPaths: ['/health'],
      oauth: {
        resourceUrl: 'https://registry.example.com',
        realm: 'mcp-registry',
        providers: [{ name: 'idp', issuerUrl: 'https://idp.example.com', audience: 'registry', allowPrivateIP: false }],
      },
      authz: { roles: { superAdmin: [{ Role: 'admin' }] } },
    })
    expect(config.storage).toEqual({
      kind: 'postgres',
      host: 'db',
      port: 5433,
      user: 'app',
      password: 'p',
      migrationUser: 'owner',
      database: 'registry',
      sslMode: 'verify-full',
      sslRootCert: '/ca.pem',
      maxOpenConns: 10,
      maxIdleConns: 2,
      connMaxLifetimeMs: 1_800_000,
    })
    expect(config.http).toMatchObject({
      cors: { origins: ['https://ui.example.com'], maxAgeSeconds: 3_600 },
      compression: false,
      cacheSeconds: 60,
    })
    expect(config.sync).toMatchObject({ parallel: 8, leaseMs: 60_000, retryMs: 500, jitter: 0, allowPrivateAddresses: true })
  })

  it('takes the kubernetes source as it is printed, beside oauth, without a format or a flag [001-010] [001-012] [001-018] [001-110] [001-116]', () => {
    // Design document 001, line 73; the auth block is completed.
    const printed = `registryName: "toolhive-cluster"

registries:
  - name: "cluster-mcp-servers"
    # format is optional for kubernetes source - always produces upstream format
    kubernetes:
      # Namespace filtering (empty = all namespaces)
      namespaces: []

      # Optional label selector (standard k8s selector syntax)
      labelSelector: ""

    syncPolicy:
      interval: "30s"

auth:
  mode: oauth
  oauth: {resourceUrl: 'https://registry.example.com', providers: [{name: a, issuerUrl: 'https://a.example.com', audience: x}]}
`
    const { sources, registries, auth } = good(printed)
    expect(sources).toEqual([{ name: 'cluster-mcp-servers', kubernetes: { namespaces: [], labelSelector: '' }, intervalMs: 30_000 }])
    expect(registries).toEqual([{ name: 'cluster-mcp-servers', sources: ['cluster-mcp-servers'] }])
    expect(auth.mode).toBe('oauth')
    expect(
      good(printed.replace(/namespaces: \[\]|labelSelector: ""/g, '').replace('kubernetes:', 'kubernetes: {}')).sources[0]?.kubernetes,
    ).toEqual({})
  })

  it('takes watch as it is printed; without it the cluster is polled [001-084] [001-092]', () => {
    // Design document 001, line 342.
    const printed = `registries:
  - name: a
    kubernetes:
      namespaces: []
      labelSelector: ""

      # Future: watch-based sync
      watch:
        enabled: true
        debounceInterval: "1s"  # batch changes within this window
auth: {mode: anonymous}
`
    expect(good(printed).sources[0]?.kubernetes?.watch).toEqual({ enabled: true, debounceInterval: '1s' })
    expect(good(printed.replace(/ *watch:[\s\S]*window\n/, '')).sources[0]?.kubernetes).toEqual({ namespaces: [], labelSelector: '' })
  })

  it('takes a kubeconfig relative to its file', () => {
    const text = `registries: [{name: a, kubernetes: {kubeconfig: {path: kube.yaml}}}]\nauth: {mode: anonymous}\n`
    expect(good(text).sources[0]?.kubernetes).toEqual({ kubeconfig: { path: '/etc/registry/kube.yaml' } })
  })

  it('[001-011] [001-017] takes the short form of the design documents, and means the same', () => {
    const short = good(`
registryName: toolhive-cluster
registries:
  - name: catalog
    format: toolhive
    file: {path: /data/registry.json}
    syncPolicy: {interval: "30s"}
    filter: {tags: {include: [database]}}
    claims: {team: a}
  - {name: own, managed: {}}
auth: {mode: anonymous}
`)
    const long = good(`
registryName: toolhive-cluster
sources:
  - name: catalog
    format: toolhive
    file: {path: /data/registry.json}
    syncPolicy: {interval: "30s"}
    filter: {tags: {include: [database]}}
    claims: {team: a}
  - {name: own, managed: {}}
registries:
  - {name: catalog, sources: [catalog], claims: {team: a}}
  - {name: own, sources: [own]}
auth: {mode: anonymous}
`)
    expect(short).toEqual(long)
    expect(short.registryName).toBe('toolhive-cluster')
    expect(short.sources[0]?.intervalMs).toBe(30_000)
  })

  it('follows anchors', () => {
    const config = good(
      'sources:\n  - {name: a, file: {path: /a}, syncPolicy: &often {interval: 1m}}\n  - {name: b, file: {path: /b}, syncPolicy: *often}\nregistries: [{name: r, sources: [a, b]}]\nauth: {mode: anonymous}\n',
    )
    expect(config.sources.map(({ intervalMs }) => intervalMs)).toEqual([60_000, 60_000])
  })

  it('gives the password of the user to the migrations only if they have the same user', () => {
    const database = (rest: string) => good(`${BASE}database: {host: db, user: app, database: r, password: p${rest}}\n`).storage
    expect(database('')).toMatchObject({ migrationPassword: 'p' })
    expect(database(', migrationUser: app')).toMatchObject({ migrationPassword: 'p' })
    expect(database(', migrationUser: owner')).not.toHaveProperty('migrationPassword')
    expect(database(', migrationUser: owner, migrationPassword: q')).toMatchObject({ migrationPassword: 'q' })
  })
})

describe('variables in values', () => {
  it('are put in as they are, and read as the type that is wanted', () => {
    const env = { HOST: 'db.example.com', PORT: '5433', PASSWORD: 'a: [b]\n"c" # ${HOST}', ON: 'TRUE', EMPTY: '' }
    const config = good(
      `${BASE}storage: {memory: "\${ON}"}\nregistryName: "\${HOST}:\${PORT} \${EMPTY:-empty} \${NONE:-none} $\${HOST} $HOST \${EMPTY}!"\n`,
      env,
    )
    expect(config.storage).toEqual({ kind: 'sqlite' })
    expect(config.registryName).toBe('db.example.com:5433 empty none ${HOST} $HOST !')
    const { storage } = good(
      `${BASE}database:\n  host: \${HOST}\n  port: \${PORT}\n  user: app\n  database: r\n  password: \${PASSWORD}\n`,
      env,
    )
    expect(storage).toMatchObject({ host: 'db.example.com', port: 5433, password: env.PASSWORD })
  })

  it('never become structure', () => {
    const config = good(`${BASE}registryName: \${X}\n`, { X: '{a: b}' })
    expect(config.registryName).toBe('{a: b}')
    expect(bad(`${BASE}http: \${X}\n`, { X: '{compression: true}' })).toEqual(['4:7 http: must be a mapping, not a text'])
  })

  it('are named, with the line, when they are not set', () => {
    expect(bad(`${BASE}database:\n  host: \${DB_HOST}\n  user: app\n  database: r\n`)).toEqual([
      '5:9 database.host: the variable DB_HOST is not set; "${DB_HOST:-…}" would give another value',
    ])
  })

  it('are taken out of whatever a check says', () => {
    const found = bad(
      'sources: [{name: a, managed: {}}]\nregistries: [{name: r, sources: [a]}]\nauth: {mode: anonymous}\nhttp: {cors: {origins: ["${TOKEN}"]}}\n',
      {
        TOKEN: 'ghp_abcdef',
      },
    )
    expect(found).toHaveLength(1)
    expect(found.join()).not.toContain('ghp_')
  })
})

describe('variables that win over the file', () => {
  it('stand for keys that hold one value, whether the file has them or not', () => {
    const config = good(BASE, {
      THV_REGISTRY_HTTP_COMPRESSION: 'false',
      THV_REGISTRY_SYNC_PARALLEL: '9',
      THV_REGISTRY_DATABASE_HOST: 'db',
      THV_REGISTRY_DATABASE_USER: 'app',
      THV_REGISTRY_DATABASE_DATABASE: 'r',
      THV_REGISTRY_DATABASE_PASSWORD: 'p',
      THV_REGISTRY_DATABASE_MIGRATIONPASSWORD: 'q',
      THV_REGISTRY_DATABASE_MIGRATIONUSER: 'owner',
    })
    expect(config.http.compression).toBe(false)
    expect(config.sync.parallel).toBe(9)
    expect(config.storage).toMatchObject({ host: 'db', password: 'p', migrationPassword: 'q', migrationUser: 'owner' })
    expect(good(BASE, { THV_REGISTRY_COMPRESS_RESPONSE: 'false' }).http.compression).toBe(false)
  })

  it('are named when they are wrong', () => {
    expect(bad(BASE, { THV_REGISTRY_SYNC_PARALLEL: 'many' })).toEqual(['0:0 THV_REGISTRY_SYNC_PARALLEL: must be a whole number'])
    expect(bad(BASE, { THV_REGISTRY_AUTH_MODE: 'basic' })).toEqual(['0:0 THV_REGISTRY_AUTH_MODE: must be anonymous or oauth'])
    expect(bad(BASE, { THV_REGISTRY_INSECURE_URL: 'si' })).toEqual(['0:0 THV_REGISTRY_INSECURE_URL: must be true or false'])
    expect(bad(`http: 7\n${BASE}`, { THV_REGISTRY_HTTP_COMPRESSION: 'false' })).toEqual(['1:7 http: must be a mapping, not a number'])
  })

  it('are warned of when they mean nothing, except those that Kubernetes makes', () => {
    const result = read(BASE, {
      THV_REGISTRY_HTTP_COMPRESION: 'x',
      THV_REGISTRY_SOURCES: 'x',
      THV_REGISTRY_WATCH_NAMESPACE: 'a',
      THV_REGISTRY_PORT: 'tcp://10.0.0.1:8080',
      THV_REGISTRY_SERVICE_HOST: '10.0.0.1',
      THV_REGISTRY_PORT_8080_TCP_ADDR: '10.0.0.1',
      THV_REGISTRY_DATABASE_PORT: 'tcp://10.0.0.2:5432',
      THV_REGISTRY_ADDRESS: ':80',
      THV_REGISTRY_LOG_LEVEL: 'debug',
    })
    expect(result.ok && result.warnings).toEqual([
      'THV_REGISTRY_HTTP_COMPRESION has no effect: no key has this name; did you mean THV_REGISTRY_HTTP_COMPRESSION?',
      'THV_REGISTRY_SOURCES has no effect: no key has this name',
      'THV_REGISTRY_WATCH_NAMESPACE has no effect: set namespaces of the kubernetes source',
    ])
  })

  it('warns about settings without effect', () => {
    const warnings = (text: string, authMode?: string) => {
      const result = read(text, {}, authMode)
      return result.ok ? result.warnings : expect.unreachable()
    }
    const claimed = 'sources: [{name: a, managed: {}, claims: {team: a}}]\nregistries: [{name: r, sources: [a], claims: {team: a}}]\n'
    const plain = 'sources: [{name: a, managed: {}}]\nregistries: [{name: r, sources: [a]}]\n'
    const oauth = '  oauth: {providers: [{name: idp, issuerUrl: "https://idp.example.com", audience: r}]}\n'
    const authz = '  authz: {roles: {superAdmin: [{role: admin}]}}\n'
    const hidesNothing = 'claims hide nothing without auth.authz: everybody who may read sees every source and registry'
    expect(warnings(`${plain}auth: {mode: anonymous}\n`)).toEqual([])
    expect(warnings(`${plain}auth:\n${oauth}`)).toEqual([])
    expect(warnings(`${claimed}auth:\n${oauth}${authz}`)).toEqual([])
    expect(warnings(`${plain}auth:\n${oauth}${authz}`)).toEqual([
      'with auth.authz only super admins see what has no claims: source a, registry r',
    ])
    expect(warnings(`${claimed}auth:\n${oauth}`)).toEqual([hidesNothing])
    expect(warnings(`${claimed}auth:\n${oauth}${authz}`, 'anonymous')).toEqual([
      'auth.oauth and auth.authz have no effect in mode anonymous',
      hidesNothing,
    ])
    const github = oauth.replace('https://idp.example.com', 'https://token.actions.githubusercontent.com')
    expect(warnings(`${plain}auth:\n${github}${authz}`).join()).not.toContain('anybody')
    expect(warnings(`${plain}auth:\n${github}`)).toEqual([
      'anybody can have a token of https://token.actions.githubusercontent.com, and may do everything without auth.authz',
    ])
    expect(warnings(`${plain}auth: {mode: anonymous, publicPaths: [/a]}\n`)).toEqual(['auth.publicPaths has no effect in mode anonymous'])
  })

  it('decide the mode in the order flag, variable, file, oauth, before anything is checked', () => {
    const PARTS = 'sources: [{name: a, managed: {}}]\nregistries: [{name: r, sources: [a]}]\n'
    expect(good(PARTS, {}, 'anonymous').auth.mode).toBe('anonymous')
    expect(good(PARTS, { THV_REGISTRY_AUTH_MODE: 'anonymous' }).auth.mode).toBe('anonymous')
    expect(good(`${PARTS}auth: {mode: nonsense}\n`, { THV_REGISTRY_AUTH_MODE: 'oauth' }, 'anonymous').auth.mode).toBe('anonymous')
    expect(bad(PARTS)[0]).toContain('mode oauth needs at least one provider')
  })

  it('allow issuers with http', () => {
    const text =
      'sources: [{name: a, managed: {}}]\nregistries: [{name: r, sources: [a]}]\nauth: {oauth: {providers: [{name: i, issuerUrl: "http://idp", audience: r}]}}\n'
    expect(bad(text)[0]).toContain('must be https')
    expect(good(text, { THV_REGISTRY_INSECURE_URL: 'true' }).auth.mode).toBe('oauth')
    expect(good(text.replace('http://idp', 'http://localhost:5556')).auth.mode).toBe('oauth')
  })
})

describe('files', () => {
  it('are read through links, and said to be unreadable', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'registry-config-'))
    try {
      const options = { env: {}, dataDir: '/data' }
      const problem = async (path: string) => {
        const result = await readConfigFile(join(folder, path), options)
        return result.ok ? 'good' : result.problems.map((found) => problemLine(path, found)).join()
      }
      writeFileSync(join(folder, 'config.yaml'), `\uFEFF${BASE}`)
      symlinkSync('config.yaml', join(folder, 'link.yaml'))
      writeFileSync(join(folder, 'latin.yaml'), Buffer.from('registryName: \xe9', 'latin1'))
      writeFileSync(join(folder, 'large.yaml'), '#'.repeat(2 << 20))
      expect(await problem('link.yaml')).toBe('good')
      expect(await problem('none.yaml')).toBe('none.yaml: does not exist')
      expect(await problem('.')).toBe('.: is not a file')
      expect(await problem('latin.yaml')).toBe('latin.yaml: is not UTF-8')
      expect(await problem('large.yaml')).toBe('large.yaml: is larger than 1048576 bytes')
    } finally {
      rmSync(folder, { recursive: true })
    }
  })
})

describe('without a file', () => {
  it('serves the bundled catalog to everybody on this machine, and behind it a place to publish with a token', () => {
    const result = defaultConfig({ env: {}, dataDir: '/data' })
    if (!result.ok) throw new Error('not good')
    expect(result.config.auth).toEqual({ mode: 'anonymous', publicPaths: [], writeTokenFile: '/data/write-token' })
    expect(result.config.storage).toEqual({ kind: 'sqlite', path: '/data/registry.db' })
    expect(result.config.registries).toEqual([{ name: 'default', sources: ['catalog', 'published'] }])
    const text = result.config.sources.find(({ name }) => name === 'catalog')?.file?.data ?? ''
    expect(JSON.parse(text)).toMatchObject({ data: { servers: expect.any(Array) } })
  })

  it('takes another file for the token from a variable', () => {
    const result = defaultConfig({ env: { THV_REGISTRY_AUTH_WRITETOKENFILE: '/run/token' }, dataDir: '/data' })
    expect(result.ok && result.config.auth.writeTokenFile).toBe('/run/token')
  })

  it('cannot be oauth, which needs providers', () => {
    expect(defaultConfig({ env: {}, dataDir: '/data', authMode: 'oauth' }).ok).toBe(false)
    expect(defaultConfig({ env: { THV_REGISTRY_AUTH_MODE: 'oauth' }, dataDir: '/data' }).ok).toBe(false)
  })
})
