import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { mountedPath, mountRoot } from './mounted-path.ts'

describe('mountedPath', () => {
  let root: string
  beforeAll(() => {
    root = mkdtempSync(join(tmpdir(), 'thv-root-'))
    mkdirSync(join(root, 'etc/runconfig'), { recursive: true })
    writeFileSync(join(root, 'etc/runconfig/runconfig.json'), '{}')
  })
  afterAll(() => rmSync(root, { recursive: true }))

  it('is below THV_ROOT where a volume put it there', () => {
    const env = { THV_ROOT: root }
    expect(mountedPath('/etc/runconfig/runconfig.json', env)).toBe(join(root, 'etc/runconfig/runconfig.json'))
    expect(mountRoot(env)).toBe(root)
  })

  it('is as written for all that no volume brought, and in a container', () => {
    expect(mountedPath('/etc/hosts', { THV_ROOT: root })).toBe('/etc/hosts')
    expect(mountedPath('runconfig.json', { THV_ROOT: join(root, 'etc/runconfig') })).toBe('runconfig.json')
    expect(mountedPath('/etc/runconfig/runconfig.json', {})).toBe('/etc/runconfig/runconfig.json')
    expect(mountRoot({})).toBe('/')
  })
})
