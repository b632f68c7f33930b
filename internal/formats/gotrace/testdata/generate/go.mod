module generate

go 1.21
