import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { type Figure, judge, renderTable } from '../bench/figure.ts'
import { ROOT } from './run.ts'

/* npm run bench [-- NAME]: runs bench/NAME.bench.ts, or all. Fails where a figure is more than 2× off its aim. */

interface Benchmark {
  run: (log: (line: string) => void) => Promise<Figure[]>
}

const wanted = process.argv[2]
const names = readdirSync(join(ROOT, 'bench')).flatMap((file) => /^(.+)\.bench\.ts$/.exec(file)?.[1] ?? [])
if (wanted !== undefined && !names.includes(wanted)) {
  console.error(`there is no benchmark ${JSON.stringify(wanted)}; there are ${names.join(', ')}`)
  process.exit(2)
}

let failed = false
for (const name of wanted === undefined ? names : [wanted]) {
  console.log(`── ${name} ──`)
  const benchmark = (await import(pathToFileURL(join(ROOT, 'bench', `${name}.bench.ts`)).href)) as Benchmark
  const figures = await benchmark.run((line) => console.log(line))
  console.log(renderTable(figures))
  mkdirSync(join(ROOT, 'bench/results'), { recursive: true })
  writeFileSync(join(ROOT, 'bench/results', `${name}.json`), `${JSON.stringify(figures, null, 2)}\n`)
  for (const figure of figures) {
    if (judge(figure) === 'missed') console.log(`finding: "${figure.name}" misses its aim by more than 20 %`)
    if (judge(figure) === 'failed') failed = true
  }
}
if (failed) console.error('✗ a figure is more than 2× off its aim')
process.exitCode = failed ? 1 : 0
