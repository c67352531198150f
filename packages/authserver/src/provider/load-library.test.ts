import { expect, it } from 'vitest'
import { quietly } from './load-library.ts'

it('the console works again when two servers that started at once are ready', async () => {
  const { warn, info } = console
  const [first, second] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const both = [quietly(() => first.promise), quietly(() => second.promise)]
  expect(console.warn).not.toBe(warn)
  first.resolve()
  await both[0]
  second.resolve()
  await both[1]
  expect([console.warn, console.info]).toEqual([warn, info])
  expect(console.warn).toBe(warn)
})
