// For `node --import`: prints the file of every module that the program loads, ES module or not.
import { writeSync } from 'node:fs'
import { registerHooks } from 'node:module'

registerHooks({
  load(url, context, nextLoad) {
    if (url.startsWith('file:')) writeSync(2, `loaded ${url}\n`)
    return nextLoad(url, context)
  },
})
