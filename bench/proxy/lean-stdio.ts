import { answer } from './lean-answers.ts'

/* The lean server over stdio, both eras at once. Lines that come together are answered together. */

let rest = ''
process.stdin.setEncoding('utf8')
process.stdin.on('data', (chunk: string) => {
  const lines = (rest + chunk).split('\n')
  rest = lines.pop() ?? ''
  let out = ''
  for (const line of lines) {
    const { response } = answer(line)
    if (response !== undefined) out += `${response}\n`
  }
  if (out !== '') process.stdout.write(out)
})
