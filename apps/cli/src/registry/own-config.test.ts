import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { movableConfig, serverVariables } from './own-config.ts'

const moved = (text: string, variables = {}) => parse(movableConfig(text, '/home/me/conf/registry.yaml', variables)) as unknown

describe('a configuration of the user for the registry of the platform', () => {
  it('names every relative path from the root, whatever the form of the file', () => {
    const text = `
sources:
  - { name: a, file: { path: servers.json } }
  - { name: b, file: { path: /srv/servers } }
  - { name: c, kubernetes: { kubeconfig: { path: ../kube } } }
  - { name: d, git: { repository: 'https://example.com/x', path: registry.json } }
registries: [{ name: short, file: { path: ./short.json } }]
storage: { path: data/registry.db }
sync: { allowedFolders: [shared, /srv] }
`
    expect(moved(text)).toEqual({
      sources: [
        { name: 'a', file: { path: '/home/me/conf/servers.json' } },
        { name: 'b', file: { path: '/srv/servers' } },
        { name: 'c', kubernetes: { kubeconfig: { path: '/home/me/kube' } } },
        { name: 'd', git: { repository: 'https://example.com/x', path: 'registry.json' } },
      ],
      registries: [{ name: 'short', file: { path: '/home/me/conf/short.json' } }],
      storage: { path: '/home/me/conf/data/registry.db' },
      sync: { allowedFolders: ['/home/me/conf/shared', '/srv'] },
    })
  })

  it('puts variables into paths, and escapes the result', () => {
    const text = `storage: { path: '\${HERE}/\${NAME:-registry}.db' }\nsources: [{ name: a, file: { path: '$\${x}/a' } }]\n`
    expect(moved(text, { HERE: '/data' })).toEqual({
      storage: { path: '/data/registry.db' },
      sources: [{ name: 'a', file: { path: `/home/me/conf/$\${x}/a` } }],
    })
  })

  it.each(['sources: [', '# nothing\n', 'sources: 5\nstorage: x\n', 'sources: [{ name: a, file: { path: /a } }] # as it is\n'])(
    'stays as it is where there is nothing to move: %j',
    (text) => {
      expect(movableConfig(text, '/home/me/registry.yaml', {})).toBe(text)
    },
  )

  it('gets the variables that the server reads, and no others', () => {
    const variables = {
      DB_PASSWORD: 'p',
      THV_REGISTRY_LOG_LEVEL: 'debug',
      THV_REGISTRY_DATA_DIR: '/x',
      PGSSLMODE: 'require',
      HOME: '/home/me',
    }
    expect(serverVariables(`database: { password: "\${DB_PASSWORD}" }`, variables)).toEqual({
      DB_PASSWORD: 'p',
      THV_REGISTRY_LOG_LEVEL: 'debug',
      PGSSLMODE: 'require',
    })
    expect(serverVariables('', { HOME: '/home/me', EMPTY: undefined })).toEqual({})
  })

  it('gets the values of variables that would change how its pod runs, or that the pod has of its own, as texts', () => {
    const variables = {
      HOME: '/home/me',
      NODE_OPTIONS: '--require "./x: y"',
      LD_PRELOAD: '/x.so',
      THV_ROOT: '/r',
      TOKEN: 't',
      PRICE: `a\${b}`,
    }
    const text = `
sources:
  - { name: a, git: { repository: "https://example.com/\${TOKEN}", auth: { passwordFile: '\${HOME}/pass' } } }
  - { name: '\${NODE_OPTIONS}', url: '\${LD_PRELOAD:-none} $\${HOME} \${PRICE} \${PATH} \${THV_ROOT}' }
`
    expect(moved(text, variables)).toEqual({
      sources: [
        { name: 'a', git: { repository: `https://example.com/\${TOKEN}`, auth: { passwordFile: '/home/me/pass' } } },
        { name: '--require "./x: y"', url: `/x.so $\${HOME} \${PRICE} \${PATH} /r` },
      ],
    })
    expect(serverVariables(text, variables)).toEqual({ TOKEN: 't', PRICE: `a\${b}` })
  })
})
