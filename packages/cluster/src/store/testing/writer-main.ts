import { writeSync } from 'node:fs'
import { ObjectStore } from '../object-store.ts'

/** Writes without end and prints each acknowledged write, one line per write, until it is killed. */
const store = new ObjectStore({ folder: process.argv[2] ?? '' })
for (let number = 0; ; number++) {
  const key = `default/o${number % 50}`
  const current = store.get('things', key)
  const body = { metadata: { name: `o${number % 50}`, namespace: 'default' }, number }
  const removes = current !== undefined && number % 7 === 0
  const result = removes ? store.delete(current) : current ? store.update(current, body) : store.create('things', key, body)
  if ('refused' in result) throw new Error(`refused: ${result.refused}`)
  writeSync(1, `${JSON.stringify({ key, revision: result.object.revision, number: removes ? null : number })}\n`)
}
