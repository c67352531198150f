// For `node --import`: prints the file of every module that the program loads, ES module or not, and of every source map that it reads.
import fs from 'node:fs'
import { registerHooks, syncBuiltinESMExports } from 'node:module'

const { readFileSync, writeSync } = fs

registerHooks({
  load(url, context, nextLoad) {
    if (url.startsWith('file:')) writeSync(2, `loaded ${url}\n`)
    return nextLoad(url, context)
  },
})

fs.readFileSync = (path, options) => {
  if (String(path).endsWith('.map')) writeSync(2, `read ${path}\n`)
  return readFileSync(path, options)
}
syncBuiltinESMExports()
