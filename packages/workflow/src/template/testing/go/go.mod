module toolhive-ts/template-judge

go 1.24
