UPDATE runs SET log = :log WHERE id = :run
