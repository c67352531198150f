import { run } from './run.ts'

/* npm run soak [-- ROUNDS]: the loops of the test suites with the full figure instead of the small one of CI. */

const rounds = process.argv[2] ?? '20'
if (!/^[1-9]\d{0,3}$/.test(rounds)) {
  console.error(`usage: npm run soak [-- ROUNDS]; ROUNDS is a whole number, not ${JSON.stringify(rounds)}`)
  process.exit(2)
}
const { code, seconds } = await run('vitest', ['run', '--project', 'cluster', 'resilience'], { env: { SOAK: rounds, FORCE_COLOR: '0' } })
console.log(`soak: ${rounds} rounds in ${seconds.toFixed(0)} s: ${code === 0 ? 'passed' : 'failed'}`)
process.exitCode = code
