import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { ImageProgram } from '../images/image-resolver.ts'
import type { PodPlace } from '../network/pod-network.ts'
import { containerSurroundings } from './container-command.ts'

const SETTINGS = { NODE_OPTIONS: '--max-semi-space-size=4', MALLOC_ARENA_MAX: '1' }
const OWN: ImageProgram = { entrypoint: ['/bin/true'], env: SETTINGS, imageId: 'own', own: true, programs: {}, hosts: {} }
const OTHER: ImageProgram = { ...OWN, env: {}, imageId: 'other', own: false }
const NO_GUARD = { env: {} } as PodPlace

describe('the variables of a container', () => {
  let folder: string
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'thv-surroundings-'))
  })
  afterAll(() => rmSync(folder, { recursive: true }))

  const environment = async (program: ImageProgram, wanted: Record<string, string>) => {
    const places = { root: join(folder, 'root'), home: join(folder, 'home') }
    const { env } = await containerSurroundings({ container: { name: 'c', image: 'i' }, program, podPlace: NO_GUARD, wanted, ...places })
    return env
  }

  it('begin with those of the image, and those of the spec win', async () => {
    expect(await environment(OWN, {})).toMatchObject(SETTINGS)
    const env = await environment(OWN, { NODE_OPTIONS: '--max-semi-space-size=16' })
    expect(env).toMatchObject({ NODE_OPTIONS: '--max-semi-space-size=16', MALLOC_ARENA_MAX: '1' })
  })

  it('have no memory settings where the program is not ours', async () => {
    const names = Object.keys(await environment(OTHER, {}))
    expect(names.filter((name) => /^NODE_|^MALLOC_/.test(name))).toEqual([])
  })
})
