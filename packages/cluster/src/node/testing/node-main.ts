import { isReady, script, startFixture } from './node-fixture.ts'

// A node with three pods in a process that a test may kill. Prints the ids of their processes, two each, once all are up.

const fixture = await startFixture()
process.on('exit', () => {
  for (const error of fixture.errors) console.error(error)
})
const names = ['a', 'b', 'c']
for (const name of names) {
  await fixture.create(name, script('sh', "(setsid sh -c 'echo $$$$; sleep 600' &); echo $$$$; while true; do sleep 1; done"))
}
const pids: number[] = []
for (const name of names) {
  const pod = await fixture.until(name, isReady)
  let lines: string[] = []
  while (lines.length < 2) lines = (await fixture.logs(pod)).trim().split('\n')
  pids.push(...lines.map(Number))
}
console.log(JSON.stringify({ pids, folder: fixture.folder }))
