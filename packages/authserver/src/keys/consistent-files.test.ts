import { readFileSync } from 'node:fs'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { ProjectedVolume } from '../testing/projected-volume.ts'
import { consistently } from './consistent-files.ts'

let volume: ProjectedVolume
beforeEach(() => {
  volume = new ProjectedVolume()
  publish(1)
})
afterEach(() => volume[Symbol.dispose]())

const publish = (version: number) => volume.publish({ a: `a${version}`, b: `b${version}` })
const text = (name: string) => readFileSync(volume.path(name), 'utf8')
const paths = () => ['a', 'b'].map((name) => volume.path(name))

it('reads files again that were replaced between two of them', async () => {
  let reads = 0
  const read = async () => {
    const first = text('a')
    if (++reads === 1) publish(2)
    return [first, text('b')]
  }
  expect(await consistently(paths(), read)).toEqual(['a2', 'b2'])
  expect(reads).toBe(2)
})

it('does not count a failure of a read that the replacement broke, but one of the files as they are', async () => {
  let reads = 0
  const read = async () => {
    if (++reads > 1) return text('b')
    publish(2)
    throw new Error('vanished')
  }
  expect(await consistently(paths(), read)).toBe('b2')
  await expect(consistently(paths(), () => Promise.reject(new Error('broken')))).rejects.toThrow('broken')
})

it('ends with files that never come to rest', async () => {
  let version = 1
  await consistently(paths(), async () => publish(++version))
  expect(version).toBe(6)
})
